"""The crash campaign (`continuity torture`): clients with known histories, a target that is killed again and again, and an audit of what is left."""
