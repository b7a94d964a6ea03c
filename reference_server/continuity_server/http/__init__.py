"""The HTTP endpoints: they translate between requests and turns, and decide nothing."""
