"""What thinks: the kernel, the lifecycles, the actors of the engine and the ports that adapters implement."""
