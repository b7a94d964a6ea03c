"""Estimate how many random bits ids have, from many of them (ISOLATE-08)."""

import math
from collections import Counter
from collections.abc import Sequence
from itertools import zip_longest


def random_bits(ids: Sequence[str]) -> float:
    """Sum the entropy of all positions. A constant position has none, and equal positions count once.

    This is an upper bound: it does not see positions that depend on others in a more complex way.
    """
    return sum(_bits(column) for column in set(zip_longest(*ids, fillvalue="")))


def _bits(column: Sequence[str]) -> float:
    """Shannon entropy of one position, with the Miller-Madow correction for a small sample."""
    counts, total = Counter(column), len(column)
    entropy = -sum(count / total * math.log2(count / total) for count in counts.values())
    return entropy + (len(counts) - 1) / (2 * total * math.log(2))
