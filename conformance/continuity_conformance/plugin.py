"""What a plugin is made of. A package of your own needs nothing else of the kit.

A target: a class under the entry-point group `continuity.targets` with `versions` and `profile(version, say)`. A pack: a subclass of `Pack` under
`continuity.packs`, whose checks are registered by `@check` (docs/how-to/plugin.md).
"""

from continuity_conformance.builds import Build
from continuity_conformance.dialogue import Dialogue
from continuity_conformance.environments import Say, npm_environment, python_environment
from continuity_conformance.errors import KitError, UsageError
from continuity_conformance.failure import Inapplicable, Unmet, Untested
from continuity_conformance.packs import Pack
from continuity_conformance.profile import Filling, Limits, Process, Profile, ToolCall
from continuity_conformance.registry import check, disturbing
from continuity_conformance.site import Control, HttpControl, Site
from continuity_conformance.targets import TargetPlugin

__all__ = [
    "Build",
    "Control",
    "Dialogue",
    "Filling",
    "HttpControl",
    "Inapplicable",
    "KitError",
    "Limits",
    "Pack",
    "Process",
    "Profile",
    "Say",
    "Site",
    "TargetPlugin",
    "ToolCall",
    "Unmet",
    "Untested",
    "UsageError",
    "check",
    "disturbing",
    "npm_environment",
    "python_environment",
]
