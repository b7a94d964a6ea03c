"""One turn: from a request to the stored answer. Nothing here knows HTTP or SQL."""
