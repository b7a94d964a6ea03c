"""The address: whether an OpenAI-compatible server is under it, or under another path of the same host."""

from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from continuity_conformance.http.messages import Answer, dig

MODELS: Final = "/v1/models"
_USUAL: Final = ("/api", "/openai")
_WANTS_KEY: Final = frozenset({401, 403})
_SHOWN: Final = 60


def elsewhere(url: str) -> Iterator[str]:
    """Other addresses of the same host that servers of this kind often have: fewer parts of the path, none, and the usual ones."""
    parts = urlsplit(url)
    path = parts.path.rstrip("/")
    shorter = [path[: len(path) - cut] for cut in range(1, len(path) + 1) if path[len(path) - cut] == "/"]
    for other in dict.fromkeys((*shorter, *(f"{base}{more}" for base in (path, "") for more in _USUAL))):
        if other != path:
            yield urlunsplit((parts.scheme, parts.netloc, other, "", ""))


def lists_models(answer: Answer) -> bool:
    """Whether this is the list of models of an OpenAI-compatible server."""
    return answer.accepted and isinstance(dig(answer.body, "data"), list)


def may_be_it(answer: Answer) -> bool:
    """A list, or a refusal in JSON for want of a key."""
    return lists_models(answer) or (answer.status in _WANTS_KEY and dig(answer.body, "error") is not None)


def model_names(answer: Answer) -> list[str]:
    listed = dig(answer.body, "data")
    names = [dig(model, "id") for model in listed] if isinstance(listed, list) else []
    return [name for name in names if isinstance(name, str) and name]


def shown(answer: Answer) -> str:
    """An answer in a few words: status, type, and the title of a page or the beginning of what it says."""
    if answer.error and not answer.status:
        return answer.error
    if moved := answer.fields("Location"):
        return f"{answer.status}, and sends us to {moved[0]}"
    text = " ".join(answer.text.split())
    low = text.lower()
    if "<title>" in low:
        start = low.index("<title>") + len("<title>")
        end = low.find("</title>", start)
        text = text[start : end if end >= 0 else None]
    cut = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
    return " ".join(part for part in (str(answer.status), answer.content_type, f'"{cut}"' if cut else "") if part)
