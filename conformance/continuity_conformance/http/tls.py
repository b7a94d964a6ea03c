"""TLS to a target: whom the kit trusts. The authorities of the system, and one of its own that a profile names."""

import ssl

from continuity_conformance.core.errors import UsageError


def trust(ca: str) -> ssl.SSLContext:
    """A context that verifies. `ca`: a file of certificates (PEM) to trust beside those of the system; empty for none."""
    context = ssl.create_default_context()
    if ca:
        try:
            context.load_verify_locations(cafile=ca)
        except (OSError, ssl.SSLError) as trouble:
            said = getattr(trouble, "strerror", None) or str(trouble)
            raise UsageError(
                f"it holds no certificate that can be trusted ({said}).",
                where=ca,
                do="Name the PEM file of the authority that signed the target's certificate.",
            ) from None
    return context


def distrust(trouble: ssl.SSLError) -> str:
    """What is wrong with a handshake, and what to do, in two sentences."""
    if isinstance(trouble, ssl.SSLCertVerificationError):
        return f"its certificate is not trusted: {trouble.verify_message}"
    if trouble.reason in {"WRONG_VERSION_NUMBER", "HTTP_REQUEST", "RECORD_LAYER_FAILURE"}:
        return "it does not speak TLS"
    return f"the TLS handshake failed: {trouble.reason or trouble}"
