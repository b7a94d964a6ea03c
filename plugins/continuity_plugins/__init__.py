"""Bundled plugins. They use the public hooks only, as anybody's do."""
