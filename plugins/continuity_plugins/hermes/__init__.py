"""hermes-agent as a target: how to install and start it, and the controls that work on its files."""
