"""Describes why a server gave no answer; mistakes of TLS in plain words."""

import http.client
import socket
import ssl
from urllib.parse import urlsplit

_PROBE_S = 3.0
_CA_ADVICE = "name the file of its CA in the environment variable SSL_CERT_FILE"
_HOSTNAME_MISMATCH, _IP_ADDRESS_MISMATCH = 62, 64  # verify codes of OpenSSL
_UNTRUSTED = {2, 18, 19, 20, 21}
_EXPIRED, _NOT_YET_VALID = 10, 9
# OpenSSL reports these if the first bytes of an answer are not TLS.
_NOT_TLS = {
    "WRONG_VERSION_NUMBER",
    "UNKNOWN_PROTOCOL",
    "HTTP_REQUEST",
    "PACKET_LENGTH_TOO_LONG",
    "RECORD_LAYER_FAILURE",
}


def describe_outage(error: BaseException, url: str) -> str:
    """Describe a request without an answer: the problem, and for TLS the remedy."""
    return tls_problem(error, url) or _describe(error)


def outage_sentence(error: BaseException, url: str, *, advice: str = "") -> str:
    """Describe a request without an answer in one sentence with the URL; append the advice, except for TLS."""
    problem = tls_problem(error, url)
    if problem:
        return f"{url} cannot be used: {problem}"
    return f"{url} does not answer: {_describe(error)}{advice}"


def tls_problem(error: BaseException, url: str) -> str:
    """Describe a mistake of TLS and its remedy; empty: the error is another one."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return _certificate_problem(error, urlsplit(url).hostname or url)
    if isinstance(error, ssl.SSLError) and error.reason in _NOT_TLS:
        return "its port does not use TLS; begin the URL with http://, or name the port for https"
    if isinstance(error, http.client.RemoteDisconnected) and url.startswith("http://") and _uses_tls(url):
        return "its port uses TLS; begin the URL with https://"
    return ""


def _describe(error: BaseException) -> str:
    """Describe an error without the number of the system, which means nothing to a reader."""
    text = error.strerror if isinstance(error, OSError) and not isinstance(error, ssl.SSLError) else None
    return text or str(error) or type(error).__name__


def _certificate_problem(error: ssl.SSLCertVerificationError, host: str) -> str:
    code = error.verify_code
    if code in {_HOSTNAME_MISMATCH, _IP_ADDRESS_MISMATCH}:
        return f"its certificate is not for {host}; use a name of the certificate in the URL, or replace it"
    if code in _UNTRUSTED:
        return f"this machine does not trust the CA of its certificate ({error.verify_message}); {_CA_ADVICE}"
    if code == _EXPIRED:
        return "its certificate has expired; renew it"
    if code == _NOT_YET_VALID:
        return "its certificate is not valid yet; check the clocks of both machines"
    return f"its certificate is not valid ({error.verify_message}); replace it, or {_CA_ADVICE}"


def _uses_tls(url: str) -> bool:
    """Return whether a port completes a TLS handshake; nothing is sent after it."""
    parts = urlsplit(url)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with (
            socket.create_connection((parts.hostname or "", parts.port or 80), timeout=_PROBE_S) as plain,
            context.wrap_socket(plain),
        ):
            return True
    except (OSError, ValueError):
        return False
