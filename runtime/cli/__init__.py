"""The command `understudy`."""
