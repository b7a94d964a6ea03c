"""Writes requirements as plain text for a terminal: a table, and a page with sequence diagrams."""
