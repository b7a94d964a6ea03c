"""Commands that read the results of runs that are over."""
