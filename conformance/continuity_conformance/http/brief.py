"""An answer in a few words, for errors."""

from typing import Final

from continuity_conformance.http.messages import Answer

_MAX_SHOWN: Final = 60


def short_text(answer: Answer) -> str:
    """An answer in a few words: status, content type, and the title of a web page or the start of the body."""
    if answer.error and not answer.status:
        return answer.error
    if location := answer.fields("Location"):
        return f"{answer.status}, a redirect to {location[0]}"
    text = " ".join(answer.text.split())
    lowered = text.lower()
    if "<title>" in lowered:
        start = lowered.index("<title>") + len("<title>")
        end = lowered.find("</title>", start)
        text = text[start : end if end >= 0 else None]
    cut = text if len(text) <= _MAX_SHOWN else f"{text[:_MAX_SHOWN]}…"
    return " ".join(part for part in (str(answer.status), answer.content_type, f'"{cut}"' if cut else "") if part)
