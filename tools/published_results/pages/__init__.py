"""The pages of docs/results. Each is made from the results.json files there and from nothing else."""
