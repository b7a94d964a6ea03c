"""Servers to look at: the bundled one, with and without keys, and behind a gateway with TLS, a path and a field of its own for keys."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from processes import CONTINUITY, serving, started
from thread_servers import KEYS

SERVERS = Path(__file__).parents[2] / "servers"
Command = Callable[..., subprocess.CompletedProcess[str]]


class Behind(NamedTuple):
    url: str
    ca: Path


@pytest.fixture(scope="module")
def plain() -> Iterator[str]:
    with serving() as url:
        yield url


@pytest.fixture(scope="module")
def keyed() -> Iterator[str]:
    with serving("--key", f"alice={KEYS['ALICES_KEY']}", "--key", f"bob={KEYS['BOBS_KEY']}") as url:
        yield url


@pytest.fixture(scope="session")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an authority of our own (ca.pem), and a certificate of 127.0.0.1 that it signed."""
    folder = tmp_path_factory.mktemp("certificates")
    new = [
        "openssl",
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
    ]
    ours = ["-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=tests", "-addext", "keyUsage=critical,keyCertSign"]
    its = ["-keyout", "own.key", "-out", "own.pem", "-subj", "/CN=gateway", "-CA", "ca.pem", "-CAkey", "ca.key"]
    its += ["-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE"]
    for command in ([*new, *ours], [*new, *its]):
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def behind(keyed: str, certificates: Path) -> Iterator[Behind]:
    tls = ["--cert", str(certificates / "own.pem"), "--private", str(certificates / "own.key")]
    command = [
        sys.executable,
        str(SERVERS / "gateway.py"),
        keyed,
        "--prefix",
        "/gateway",
        "--key-field",
        "X-Api-Key",
        *tls,
    ]
    with started(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as gateway:
        assert gateway.stdout is not None
        try:
            yield Behind(gateway.stdout.readline().removeprefix("listening on ").strip(), certificates / "ca.pem")
        finally:
            gateway.terminate()


@pytest.fixture
def continuity(tmp_path: Path) -> Command:
    """Run the command in the test's folder, to its end."""

    def run(*arguments: str) -> subprocess.CompletedProcess[str]:
        env = {**os.environ, **KEYS, "XDG_CACHE_HOME": str(tmp_path / "cache"), "COLUMNS": "80"}
        return subprocess.run(
            [CONTINUITY, *arguments], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=100, check=False
        )

    return run
