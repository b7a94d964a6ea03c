"""How many random bits ids have, estimated from many of them (ISOLATE-08)."""

import math
from collections import Counter
from collections.abc import Sequence
from itertools import zip_longest


def random_bits(ids: Sequence[str]) -> float:
    """The sum over all positions. One that never varies has none, and one that always repeats another counts once.

    It is an upper bound: what depends on other positions in a less simple way is not seen from outside.
    """
    return sum(_bits(column) for column in set(zip_longest(*ids, fillvalue="")))


def _bits(column: Sequence[str]) -> float:
    """Shannon's entropy of what was seen, with the correction of Miller and Madow for having seen only so many."""
    counts, total = Counter(column), len(column)
    seen = -sum(count / total * math.log2(count / total) for count in counts.values())
    return seen + (len(counts) - 1) / (2 * total * math.log(2))
