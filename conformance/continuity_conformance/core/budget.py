"""How much random testing a run does, and from which seed. The same seed makes the same requests."""

from dataclasses import dataclass, field, replace
from pathlib import Path

from continuity_conformance.core.cache import user_cache
from continuity_conformance.core.option_table import DEFAULT_EXAMPLES, DEFAULT_SEED

__all__ = ["DEFAULT_EXAMPLES", "DEFAULT_SEED", "Budget", "found_folder"]


def found_folder() -> Path:
    """The default folder for sequences that failed."""
    return user_cache() / "found"


@dataclass(frozen=True, slots=True)
class Budget:
    """`examples`: how many generated requests each operation and each property is tried with. `seed`: the seed that they are generated from.

    The default seed is a constant, so that two runs of one commit find the same. `folder`: where findings are saved. `lowered`: the profile capped `examples`.
    """

    examples: int = DEFAULT_EXAMPLES
    seed: int = DEFAULT_SEED
    folder: Path = field(default_factory=found_folder)
    lowered: bool = False

    def within(self, most: int) -> "Budget":
        """Cap the default examples for slow targets; with fewer, a check can fail but not pass."""
        if not most or most >= self.examples or self.examples != DEFAULT_EXAMPLES:
            return self
        return replace(self, examples=most, lowered=True)

    @property
    def arguments(self) -> str:
        """The arguments that repeat the same requests on a command line."""
        examples = f" --examples {self.examples}" if self.examples != DEFAULT_EXAMPLES else ""
        return f" --seed {self.seed}{examples}"
