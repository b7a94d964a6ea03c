"""Find an OpenAI-compatible server: at the given address, or at another path of the same host."""

from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from continuity_conformance.http.messages import Answer, dig

MODELS: Final = "/v1/models"
_COMMON_PATHS: Final = ("/api", "/openai")
_KEY_REFUSED: Final = frozenset({401, 403})


def other_addresses(url: str) -> Iterator[str]:
    """Other addresses of the same host to try: with a shorter path, without a path, and with common paths."""
    parts = urlsplit(url)
    path = parts.path.rstrip("/")
    shorter = [path[: len(path) - cut] for cut in range(1, len(path) + 1) if path[len(path) - cut] == "/"]
    for other in dict.fromkeys((*shorter, *(f"{base}{more}" for base in (path, "") for more in _COMMON_PATHS))):
        if other != path:
            yield urlunsplit((parts.scheme, parts.netloc, other, "", ""))


def lists_models(answer: Answer) -> bool:
    """True for a list of models, as OpenAI-compatible servers return it."""
    return answer.accepted and isinstance(dig(answer.body, "data"), list)


def looks_compatible(answer: Answer) -> bool:
    """True for a list of models, or for a JSON error that says that a key is missing or wrong."""
    return lists_models(answer) or (answer.status in _KEY_REFUSED and dig(answer.body, "error") is not None)


def model_names(answer: Answer) -> list[str]:
    models = dig(answer.body, "data")
    names = [dig(model, "id") for model in models] if isinstance(models, list) else []
    return [name for name in names if isinstance(name, str) and name]
