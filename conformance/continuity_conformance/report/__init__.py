"""Reports: a run in every form that people and programs read it in.

Each is made from results.json alone (`model` reads it back), and none counts for itself (`tally` does). What a server said is data in all of them.
"""
