"""TLS of the server: its certificate, and the required certificates of clients."""

import ssl
from typing import NoReturn

from roost.errors import BadSettings, SettingsMissing, read_problem
from roost.model.settings.placement_settings import Placement as Settings
from roost.observe import log


def tls_context(settings: Settings) -> ssl.SSLContext | None:
    """Return the TLS context of the settings; None: plain HTTP.

    Raises:
        BadSettings: a file is unreadable or invalid; the message names it.
    """
    if not settings.tls_cert:
        return None
    _check_readable("tls_cert", settings.tls_cert)
    if settings.tls_key:
        _check_readable("tls_key", settings.tls_key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    load_certificate(context, settings)
    if settings.tls_ca:
        _check_readable("tls_ca", settings.tls_ca)
        try:
            context.load_verify_locations(settings.tls_ca)
        except ssl.SSLError:
            raise BadSettings("placement.tls_ca", f"{settings.tls_ca} holds no certificate") from None
        context.verify_mode = ssl.CERT_REQUIRED
    return context


def load_certificate(context: ssl.SSLContext, settings: Settings) -> None:
    """Load the certificate and key of the settings for new connections.

    Raises:
        BadSettings: a file is invalid, or the key does not match; the previous certificate stays.
    """
    cert, key = settings.tls_cert, settings.tls_key or settings.tls_cert
    trial = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    try:
        # Only checks the file: whether clients trust the certificate is their decision.
        trial.load_verify_locations(cert)
    except (ssl.SSLError, OSError):
        raise BadSettings("placement.tls_cert", f"{cert} holds no certificate") from None
    try:
        for each in (trial, context):
            each.load_cert_chain(cert, key, password=lambda: _refuse_password(key))
    except ssl.SSLError as error:
        if error.reason == "KEY_VALUES_MISMATCH":
            raise BadSettings("placement.tls_key", f"{key} is not the key of {cert}") from None
        raise BadSettings("placement.tls_key", f"{key} holds no usable private key") from None
    except OSError as error:
        raise SettingsMissing("placement.tls_key", f"{key} {read_problem(error)}") from None


def reload_certificate(context: ssl.SSLContext, settings: Settings) -> None:
    """Load certificate and key again, and log the result."""
    try:
        load_certificate(context, settings)
    except BadSettings as error:
        log.event("certificate_refused", error=str(error))
    else:
        log.event("certificate_loaded")


def _refuse_password(key: str) -> NoReturn:
    raise BadSettings("placement.tls_key", f"{key} is encrypted; a server needs a key without a password")


def _check_readable(setting: str, path: str) -> None:
    try:
        with open(path, "rb"):  # noqa: PTH123  # keeps the path as in the settings
            pass
    except OSError as error:
        raise SettingsMissing(f"placement.{setting}", f"{path} {read_problem(error)}") from None
    except ValueError as error:  # a NUL in the name
        raise BadSettings(f"placement.{setting}", f"{path} cannot be read: {error}") from None
