"""How much random testing a run does, and from which seed. The same seed makes the same requests."""

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from continuity_conformance.core.cache import user_cache

DEFAULT_EXAMPLES: Final = 12
DEFAULT_SEED: Final = 1


def found_folder() -> Path:
    """Where sequences that failed are saved, unless somebody names a folder."""
    return user_cache() / "found"


@dataclass(frozen=True, slots=True)
class Budget:
    """`examples`: how many generated ones each operation and each property is tried with. `seed`: where they come from.

    The seed is a constant unless somebody gives another, so that two runs of one commit find the same. `folder`: where what was found is saved.
    """

    examples: int = DEFAULT_EXAMPLES
    seed: int = DEFAULT_SEED
    folder: Path = field(default_factory=found_folder)
    lowered: bool = False

    def within(self, most: int) -> "Budget":
        """What a slow target bears, where nobody asked for a number; it is told then that fewer can only refute."""
        if not most or most >= self.examples or self.examples != DEFAULT_EXAMPLES:
            return self
        return replace(self, examples=most, lowered=True)

    @property
    def arguments(self) -> str:
        """What makes a command line try the same again."""
        examples = f" --examples {self.examples}" if self.examples != DEFAULT_EXAMPLES else ""
        return f" --seed {self.seed}{examples}"
