"""The environment variables of a target that must not see the user's settings, nor the internet (`process.isolated`)."""

import os
from pathlib import Path
from typing import Final

_CLOSED_PROXY: Final = "http://127.0.0.1:9"
"""Nothing listens there, so requests of the target to the internet fail at once."""
_NO_AUTHORITY: Final = Path(__file__).with_name("no_authority.pem")
"""The only certificate that an isolated target trusts. Its key does not exist. To read all certificates of the system takes 50 ms for every HTTP client."""
_INHERITED: Final = ("PATH", "LANG", "LANGUAGE", "LC_ALL", "LC_CTYPE", "TZ", "SYSTEMROOT")


def isolated_environment(folder: str) -> dict[str, str]:
    """Environment variables that keep a target inside its folder, and away from the user's settings and from every host but loopback."""
    temporary = Path(folder, "tmp")
    temporary.mkdir(exist_ok=True)
    proxies = {
        name: _CLOSED_PROXY for each in ("http", "https", "all") for name in (f"{each}_proxy", f"{each}_PROXY".upper())
    }
    loopback = dict.fromkeys(("no_proxy", "NO_PROXY"), "127.0.0.1,localhost,::1")
    inherited = {name: os.environ[name] for name in _INHERITED if name in os.environ}
    node = {"NODE_USE_ENV_PROXY": "1"}  # without it, Node ignores the proxies of the environment
    own = {"HOME": folder, "TMPDIR": str(temporary), "SSL_CERT_FILE": str(_NO_AUTHORITY)}
    return {**inherited, **proxies, **loopback, **node, **own}
