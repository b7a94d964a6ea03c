"""The store: SQLite. All SQL of the server is in this folder."""
