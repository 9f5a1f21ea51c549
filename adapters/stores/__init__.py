"""Where state is kept: in a SQLite file, or in memory for simulations. One conformance suite holds for both."""
