"""What adapters implement, each contract documented once."""
