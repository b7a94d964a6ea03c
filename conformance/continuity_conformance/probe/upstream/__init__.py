"""The APIs that the probe model speaks: one module each, which reads requests and writes replies.

Whichever API a target uses, the log has the same messages.
"""
