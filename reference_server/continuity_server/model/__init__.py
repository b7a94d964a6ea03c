"""The model that the agent asks, and the tool that it offers."""
