"""What a plugin is made of. A package of your own needs nothing else of the kit.

A target: a class under the entry-point group `continuity.targets` with `versions` and `profile(version, say)` (docs/how-to/plugin.md).
"""

from continuity_conformance.environments import Say, npm_environment, python_environment
from continuity_conformance.errors import KitError, UsageError
from continuity_conformance.failure import Untested
from continuity_conformance.profile import Filling, Limits, Process, Profile, ToolCall
from continuity_conformance.site import Control, HttpControl, Site
from continuity_conformance.targets import TargetPlugin

__all__ = [
    "Control",
    "Filling",
    "HttpControl",
    "KitError",
    "Limits",
    "Process",
    "Profile",
    "Say",
    "Site",
    "TargetPlugin",
    "ToolCall",
    "Untested",
    "UsageError",
    "npm_environment",
    "python_environment",
]
