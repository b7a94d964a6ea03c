"""hermes-agent as a target: how it is installed and started, and the controls that work on its files."""
