"""The pages of docs/results, each made of the results.json files beside it and of nothing else."""
