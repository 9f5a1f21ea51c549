"""What the program promises."""
