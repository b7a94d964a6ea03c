"""A real server that keeps the contract of Session Continuity. It knows the spec only through HTTP."""
