"""URLs that are safe to show."""

from urllib.parse import SplitResult, urlsplit, urlunsplit


def public_url(url: str) -> str:
    """The URL without user name and password, query and fragment."""
    parts = split(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def split(url: str) -> SplitResult:
    """Like `urlsplit`, but text that is not a URL does not raise: there may still be a password in it, before an @."""
    try:
        return urlsplit(url)
    except ValueError:
        return SplitResult("", url.partition("//")[2], "", "", "")
