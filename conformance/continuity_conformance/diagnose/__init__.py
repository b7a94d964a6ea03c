"""Diagnosis: group the failures of a run by the fault that causes them.

The kit knows how the bundled server fails with each of its defects (`suite/signatures.json`). A run on any target is compared with these. The method is
described in docs/explanation/diagnosis.md.
"""
