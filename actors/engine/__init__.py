"""The engine: the actors that bring workstreams to their end."""
