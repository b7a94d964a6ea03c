"""ENV: which turns share one execution environment. Pure: names in, a name out."""

import hashlib
import json
from typing import Final

from continuity_server.settings import Options

SHARED: Final = "default"


class EnvRules:
    """The rule about execution environments."""

    options: Options

    def environment(self, owner: str, root: str) -> str:
        """ENV-01, -02, -03: one for all (shared), or one for each chain, named by its root, which outlives rotations and restarts."""
        if self.options.environment == "shared":
            return SHARED
        return hashlib.sha256(json.dumps([owner, root]).encode()).hexdigest()[:32]

    def deleted_environment(self, owner: str, root: str) -> str | None:
        """ENV-04: the environment that goes with a deleted chain. One that all conversations share stays."""
        return None if self.options.environment == "shared" else self.environment(owner, root)
