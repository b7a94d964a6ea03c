"""TLS: which certificates the kit trusts: those of the system, and the file that a profile names."""

import functools
import ssl

from continuity_conformance.core.errors import UsageError


def trust(ca: str) -> ssl.SSLContext:
    """A verifying context. `ca`: a PEM file of certificates to trust in addition; empty for none."""
    if not ca:
        return _trusting_the_system()
    context = ssl.create_default_context()
    try:
        context.load_verify_locations(cafile=ca)
    except (OSError, ssl.SSLError) as error:
        problem = getattr(error, "strerror", None) or str(error)
        raise UsageError(
            f"it holds no certificate that can be trusted ({problem}).",
            where=ca,
            do="Name the PEM file of the authority that signed the target's certificate.",
        ) from None
    return context


@functools.cache
def _trusting_the_system() -> ssl.SSLContext:
    """Made once: to read the certificates of the system takes some hundredths of a second."""
    return ssl.create_default_context()


def tls_problem(error: ssl.SSLError) -> str:
    """What went wrong in a TLS handshake."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {error.verify_message}"
    if error.reason in {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"}:
        return "it does not speak TLS"
    return f"the TLS handshake failed: {error.reason or error}"
