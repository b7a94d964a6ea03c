"""Reaching a target: name, port and TLS, each told in one line where it fails. Nothing is asked of the target yet."""

import asyncio
import contextlib
import socket
import ssl
import time
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from continuity_conformance.core.errors import UnreachableError
from continuity_conformance.core.urls import public_url
from continuity_conformance.http.tls import distrust, trust

_AT_ONCE: Final = 1.5
_START: Final = "Start the target, or check the address."


@dataclass(frozen=True, slots=True)
class Reached:
    """How a target was reached. `tls` is empty for plain HTTP."""

    host: str
    address: str
    port: int
    seconds: float
    tls: str = ""


async def must_answer(url: str, ca: str = "", seconds: float = _AT_ONCE) -> Reached:
    """A closed port is told in one line, at once; so is a name that nobody has, and a certificate that nobody trusts."""
    parts, where = urlsplit(url), public_url(url)
    host, secure = parts.hostname or "", parts.scheme == "https"
    port = parts.port or (443 if secure else 80)
    context = trust(ca) if secure else None
    began = time.monotonic()
    try:
        async with asyncio.timeout(seconds):
            _, writer = await asyncio.open_connection(host, port, ssl=context)
    except ssl.SSLError as trouble:
        raise UnreachableError(f"TLS: {distrust(trouble)}.", where=where, do=_remedy(trouble)) from None
    except socket.gaierror as trouble:
        raise UnreachableError(
            f"The name {host} is not known ({trouble.strerror}).", where=where, do="Check the address."
        ) from None
    except TimeoutError:
        raise UnreachableError(f"Nothing answers (no connection in {seconds:g} s).", where=where, do=_START) from None
    except OSError as trouble:
        raise UnreachableError(f"Nothing answers ({trouble}).", where=where, do=_START) from None
    reached = Reached(host, writer.get_extra_info("peername")[0], port, time.monotonic() - began, _tls(writer))
    await _hang_up(writer)
    return reached


async def _hang_up(writer: asyncio.StreamWriter) -> None:
    """At once: nobody is waited for to say goodbye."""
    writer.transport.abort()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


def _tls(writer: asyncio.StreamWriter) -> str:
    encrypted: ssl.SSLObject | None = writer.get_extra_info("ssl_object")
    return (encrypted.version() or "TLS") if encrypted is not None else ""


def _remedy(trouble: ssl.SSLError) -> str:
    if isinstance(trouble, ssl.SSLCertVerificationError):
        return "Name the file of its authority: ca: ca.pem in the profile (continuity doctor: --ca ca.pem)."
    return "Try the same address with http://"


async def other_than_http(url: str, seconds: float) -> str:
    """What a port speaks that did not answer a request, as far as it shows: a TLS handshake is tried, and whatever it says by itself is read."""
    parts = urlsplit(url)
    host, secure = parts.hostname or "", parts.scheme == "https"
    port = parts.port or (443 if secure else 80)
    if not secure and await _speaks_tls(host, port, seconds):
        return "it speaks TLS: try the same address with https://"
    said = await _greeting(host, port, seconds)
    return f"it does not speak HTTP; it says: {said}" if said else "it does not speak HTTP"


async def _speaks_tls(host: str, port: int, seconds: float) -> bool:
    anybody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    anybody.check_hostname, anybody.verify_mode = False, ssl.CERT_NONE
    try:
        async with asyncio.timeout(seconds):
            _, writer = await asyncio.open_connection(host, port, ssl=anybody)
    except (OSError, TimeoutError):
        return False
    await _hang_up(writer)
    return True


async def _greeting(host: str, port: int, seconds: float) -> str:
    try:
        async with asyncio.timeout(seconds):
            reader, writer = await asyncio.open_connection(host, port)
    except (OSError, TimeoutError):
        return ""
    try:
        async with asyncio.timeout(seconds):
            said = await reader.read(60)
    except (OSError, TimeoutError):
        return ""
    finally:
        await _hang_up(writer)
    return said.decode("ascii", "backslashreplace").strip()
