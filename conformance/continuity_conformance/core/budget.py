"""How much generated testing a run does, and with which seed. The same seed generates the same requests."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from continuity_conformance.core.cache import user_cache

DEFAULT_EXAMPLES: Final = 12
DEFAULT_SEED: Final = 1


def default_folder() -> Path:
    """The default folder for sequences that fail."""
    return user_cache() / "found"


@dataclass(frozen=True, slots=True)
class Budget:
    """`examples`: the number of generated examples for each operation and each property. `folder`: where failing sequences are saved.

    The default `seed` is a constant, so that two runs of one commit find the same failures. `lowered`: `capped` reduced `examples`.
    """

    examples: int = DEFAULT_EXAMPLES
    seed: int = DEFAULT_SEED
    folder: Path = field(default_factory=default_folder)
    lowered: bool = False

    def capped(self, limit: int) -> "Budget":
        """Cap the default number of examples for slow targets (0: no cap); with fewer, a check can fail but not pass.

        A number that the user asks for is not capped.
        """
        if not limit or limit >= self.examples or self.examples != DEFAULT_EXAMPLES:
            return self
        return replace(self, examples=limit, lowered=True)

    @property
    def arguments(self) -> str:
        """The options of a command line that repeats these examples."""
        examples = f" --examples {self.examples}" if self.examples != DEFAULT_EXAMPLES else ""
        return f" --seed {self.seed}{examples}"
