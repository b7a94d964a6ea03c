"""`continuity doctor`: what a server at an address is, found out by a handful of requests, and a profile to start from.

It asks as a run would at its start (`calibration`), and tells what a run could decide by what a run would ask (`applicability`).
"""
