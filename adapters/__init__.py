"""What touches the world: stores, tools, workspaces, checks and sinks."""
