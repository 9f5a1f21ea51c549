"""Acceptance tests of what tasks have done."""
