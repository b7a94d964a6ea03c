"""The subcommands of `continuity`, a module each. Imported when they are called, so that `--help` is quick."""
