"""What you start: the embedding facade, definitions, recovery, simulation, daemon and command line."""
