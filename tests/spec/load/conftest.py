"""Files that the tests of loading read."""

import textwrap

import pytest

ENTRY = """\
- id: SLUG-03
  level: MUST NOT
  text: A slug keeps its session after an eviction.
  why: Otherwise every eviction forks the conversation.
  origin: [hermes-agent#16517]
  when: {turns: serialize, derivation: [content-v1, content-v2]}
  steps:
    - respond: {conversation: $slug, say: red}
      expect: {session: $s, response: $gone}
    - evict: {response: $gone}
    - together:
        - respond: {as: bob, conversation: $slug, say: "still here?"}
          at_once: 3
        - restart
    - chat: {session: $s, say: blue, stream: true, model: fails}
      during: [kill]
    - break_store: reads
    - control: {damage-lineage: {session: $s, how: cycle}}
  refuted_by: [slug-forks-on-eviction]
"""


@pytest.fixture
def entry_text():
    """A requirement with steps of every kind."""
    return ENTRY


@pytest.fixture
def write(tmp_path):
    def write(text, name="slug.yaml"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    return write
