"""Generated texts and conversations: characters of all kinds, and content in every form that the document allows."""

from typing import Any, Final

from hypothesis import strategies as st

AWKWARD: Final = (
    *("\0", "\t", "\n", "\x1f", "\x7f", "\x85", "\xa0", "\xad"),
    *("é", "e\u0301", "ß", "İ", "ﬁ", "\uff21", "\u200b", "\u202e", "\u2028", "\ufeff", "\uffff"),
    *("\U0001f600", "\U0010ffff", "%00", "%2F", "+", "&", ",", ";", "=", "#", "?", "/", "\\", "'", '"', "``", "${x}"),
    *("..", "null", "0", "-1", " a ", "A"),
)
"""Texts that servers may cut, fold, trim, decode or split. Each is tried once with every seed."""

Messages = list[dict[str, Any]]

_ANY: Final = st.characters(exclude_categories=["Cs"])
_PRINTABLE: Final = st.characters(exclude_categories=["Cs", "Cc"])


def texts(max_size: int = 40) -> st.SearchStrategy[str]:
    """Any text without lone surrogates."""
    mixed = st.lists(st.sampled_from(AWKWARD) | st.text(_ANY, max_size=4), min_size=1, max_size=4).map("".join)
    return st.text(_ANY, max_size=max_size) | mixed


def names() -> st.SearchStrategy[str]:
    """Short names, and some with lengths around the limit of 256."""
    long = st.integers(240, 300).map(lambda length: "n" * length)
    return texts(30).filter(bool) | long


def header_values() -> st.SearchStrategy[str]:
    """Values that a header can carry: a line break would start another header."""
    awkward = st.sampled_from([text for text in AWKWARD if not set(text) & set("\r\n\0")])
    mixed = st.lists(awkward | st.text(_PRINTABLE, max_size=4), min_size=1, max_size=4).map("".join)
    return st.text(_PRINTABLE, min_size=1, max_size=30) | mixed | st.integers(240, 300).map(lambda length: "h" * length)


def _parts() -> st.SearchStrategy[dict[str, Any]]:
    user_text = st.builds(
        lambda kind, text: {"type": kind, "text": text}, st.sampled_from(["text", "input_text"]), texts(12)
    )
    assistant_text = texts(12).map(lambda text: {"type": "output_text", "text": text})
    image = st.just({"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}})
    other = st.sampled_from(["input_audio", "file", "refusal", ""]).map(lambda kind: {"type": kind})
    return st.one_of(user_text, assistant_text, image, other)


def _contents() -> st.SearchStrategy[Any]:
    return texts(20) | st.lists(_parts(), max_size=4)


def _messages(*roles: str) -> st.SearchStrategy[dict[str, Any]]:
    return st.builds(lambda role, content: {"role": role, "content": content}, st.sampled_from(roles), _contents())


def conversations() -> st.SearchStrategy[Messages]:
    """Up to three system prompts or greetings, the first user message, and up to three later messages."""
    before = st.lists(_messages("system", "developer", "assistant"), max_size=3)
    later = st.lists(_messages("assistant", "user", "system", "developer"), max_size=3)
    return st.builds(lambda head, first, tail: [*head, first, *tail], before, _messages("user"), later)


def awkward_conversations() -> list[Messages]:
    """Each awkward text in each part of an opening that counts for the id, and each kind of content part."""
    openings = [[{"role": "system", "content": text}, {"role": "user", "content": f"a{text}b"}] for text in AWKWARD]
    kinds = ("text", "input_text", "output_text", "input_audio")
    parts = [
        [{"role": "user", "content": [{"type": "text", "text": "a"}, {"type": kind, "text": "b"}]}] for kind in kinds
    ]
    return [*openings, *parts, [{"role": "developer", "content": []}, {"role": "user", "content": []}]]
