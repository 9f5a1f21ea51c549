"""Where the tasks of a workstream work: a directory of its own, or a worktree of a git repository."""
