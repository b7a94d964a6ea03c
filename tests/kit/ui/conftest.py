"""Somebody who asks a page of `continuity ui`, with and without its token."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from page_visitor import Visitor, page_server


@pytest.fixture
def outside(tmp_path: Path) -> Iterator[Visitor]:
    """Somebody who has not shown the token yet."""
    with page_server(tmp_path) as (_, visitor):
        yield visitor


@pytest.fixture
def visitor(outside: Visitor) -> Visitor:
    outside.come_in()
    return outside
