"""Connecting to a target: name, port and TLS. No request is sent yet."""

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
from continuity_conformance.http.tls import tls_problem, trust

_AT_ONCE: Final = 1.5
_START: Final = "Start the target, or check the address."


@dataclass(frozen=True, slots=True)
class Connection:
    """A connection that worked. `tls` is the version, empty for plain HTTP."""

    host: str
    address: str
    port: int
    seconds: float
    tls: str = ""


async def must_answer(url: str, ca: str = "", seconds: float = _AT_ONCE) -> Connection:
    """Fail fast with one line for a closed port, an unknown host or an untrusted certificate."""
    parts, where = urlsplit(url), public_url(url)
    host, secure = parts.hostname or "", parts.scheme == "https"
    port = parts.port or (443 if secure else 80)
    context = trust(ca) if secure else None
    began = time.monotonic()
    try:
        async with asyncio.timeout(seconds):
            _, writer = await asyncio.open_connection(host, port, ssl=context)
    except ssl.SSLError as error:
        raise UnreachableError(f"TLS: {tls_problem(error)}.", where=where, do=_remedy(error)) from None
    except socket.gaierror as error:
        raise UnreachableError(
            f"The name {host} is not known ({error.strerror}).", where=where, do="Check the address."
        ) from None
    except TimeoutError:
        raise UnreachableError(f"Nothing answers (no connection in {seconds:g} s).", where=where, do=_START) from None
    except OSError as error:
        raise UnreachableError(f"Nothing answers ({error}).", where=where, do=_START) from None
    connection = Connection(host, writer.get_extra_info("peername")[0], port, time.monotonic() - began, _tls(writer))
    await _hang_up(writer)
    return connection


async def _hang_up(writer: asyncio.StreamWriter) -> None:
    """Abort: do not wait for the other side to close."""
    writer.transport.abort()
    with contextlib.suppress(OSError):
        await writer.wait_closed()


def _tls(writer: asyncio.StreamWriter) -> str:
    encrypted: ssl.SSLObject | None = writer.get_extra_info("ssl_object")
    return (encrypted.version() or "TLS") if encrypted is not None else ""


def _remedy(error: ssl.SSLError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return "Name the file of its authority: ca: ca.pem in the profile (continuity doctor: --ca ca.pem)."
    return "Try the same address with http://"


async def other_than_http(url: str, seconds: float) -> str:
    """Guess what a port speaks that did not answer an HTTP request: try a TLS handshake, then read what it sends by itself."""
    parts = urlsplit(url)
    host, secure = parts.hostname or "", parts.scheme == "https"
    port = parts.port or (443 if secure else 80)
    if not secure and await _speaks_tls(host, port, seconds):
        return "it speaks TLS: try the same address with https://"
    greeting = await _greeting(host, port, seconds)
    return f"it does not speak HTTP; it sends: {greeting}" if greeting else "it does not speak HTTP"


async def _speaks_tls(host: str, port: int, seconds: float) -> bool:
    any_certificate = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    any_certificate.check_hostname, any_certificate.verify_mode = False, ssl.CERT_NONE
    try:
        async with asyncio.timeout(seconds):
            _, writer = await asyncio.open_connection(host, port, ssl=any_certificate)
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
            greeting = await reader.read(60)
    except (OSError, TimeoutError):
        return ""
    finally:
        await _hang_up(writer)
    return greeting.decode("ascii", "backslashreplace").strip()
