"""Addresses that are safe to show."""

from urllib.parse import SplitResult, urlsplit, urlunsplit


def public_url(url: str) -> str:
    """An address without account, query and fragment."""
    parts = split(url)
    return urlunsplit((parts.scheme, parts.netloc.rpartition("@")[2], parts.path, "", ""))


def split(url: str) -> SplitResult:
    """Like `urlsplit`, but text that is no address does not raise: what stands before an @ may still be a password."""
    try:
        return urlsplit(url)
    except ValueError:
        return SplitResult("", url.partition("//")[2], "", "", "")
