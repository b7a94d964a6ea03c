"""The public API for plugins. A plugin imports nothing else of the kit.

A target is a class in the entry-point group `continuity.targets`, with `versions` and `profile(version, say)`. A pack is a subclass of `Pack`
in the group `continuity.packs`; `@check` registers its checks (docs/how-to/plugin.md).
"""

from continuity_conformance.checks.registry import check, disturbing
from continuity_conformance.core.errors import KitError, UsageError
from continuity_conformance.core.failure import Inapplicable, Unmet, Untested
from continuity_conformance.http.messages import KeyField
from continuity_conformance.scenario.dialogue import Dialogue
from continuity_conformance.suite.packs import Pack
from continuity_conformance.target.build import Build
from continuity_conformance.target.control_context import Control, ControlContext, HttpControl
from continuity_conformance.target.id_form import IdForm
from continuity_conformance.target.install import Say, npm_environment, python_environment
from continuity_conformance.target.old_database import OldRow, OldStore, old_responses, old_slugs
from continuity_conformance.target.profile import Filling, Limits, Process, Profile, ToolCall
from continuity_conformance.target.resolve import TargetPlugin

__all__ = [
    "Build",
    "Control",
    "ControlContext",
    "Dialogue",
    "Filling",
    "HttpControl",
    "IdForm",
    "Inapplicable",
    "KeyField",
    "KitError",
    "Limits",
    "OldRow",
    "OldStore",
    "Pack",
    "Process",
    "Profile",
    "Say",
    "TargetPlugin",
    "ToolCall",
    "Unmet",
    "Untested",
    "UsageError",
    "check",
    "disturbing",
    "npm_environment",
    "old_responses",
    "old_slugs",
    "python_environment",
]
