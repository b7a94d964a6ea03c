"""`continuity doctor`: find out with a few requests what a server is and what a run could test, and write a first profile.

It starts as a run does (`run.calibrate`), and uses the same rules as a run to say what can be tested (`run.applicability`).
"""
