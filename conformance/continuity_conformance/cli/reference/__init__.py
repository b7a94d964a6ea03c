"""Commands that show what the kit and the spec contain, without a target."""
