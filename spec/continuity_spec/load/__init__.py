"""Reads the files of a spec: YAML, JSON Schema, and the requirements in them."""
