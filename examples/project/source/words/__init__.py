"""A small program, to be built by ../build.yaml."""
