"""Where what happened is told to the outside: for now the log of transitions."""
