"""The public hooks: everything that a plugin in a package of its own may use. What is not named here may change at any time.

A *target* is a class in the entry-point group `continuity.targets`, a *pack* one in `continuity.packs` (docs/how-to/plugin.md).
"""

from continuity_conformance.dialogue import Dialogue
from continuity_conformance.failure import Inapplicable, Unmet, Untested
from continuity_conformance.packs import Pack
from continuity_conformance.profile import Limits, Process, Profile, ToolCall
from continuity_conformance.registry import check, disturbing
from continuity_conformance.targets import TargetPlugin

__all__ = [
    "Dialogue",
    "Inapplicable",
    "Limits",
    "Pack",
    "Process",
    "Profile",
    "TargetPlugin",
    "ToolCall",
    "Unmet",
    "Untested",
    "check",
    "disturbing",
]
