"""Wrap a paragraph that begins with a lead, such as an id, and indent its other lines."""

import textwrap


def wrap(lead: str, text: str, indent: int, width: int) -> str:
    """Wrap a text whose first line begins with `lead`. Without a text, return the lead alone."""
    return (
        textwrap.fill(
            text,
            width=width,
            initial_indent=lead,
            subsequent_indent=" " * indent,
            break_long_words=False,
            break_on_hyphens=False,
        )
        or lead.rstrip()
    )
