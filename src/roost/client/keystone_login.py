"""Tokens of Keystone for requests to another service, and the endpoint of the service in Keystone's catalog.

Needs the extra ``keystone``.
"""

import logging
import re
import ssl
from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from roost.errors import BadSettings, PlacementGone, Unavailable, extra_hint, first_line, quote_value

# A name and password before the host of a URL.
_LOGIN_IN_URL = re.compile(r"//[^/@]*@")
# Statuses of Keystone that a correct login does not get.
_REFUSALS = {400, 401, 403, 404}
# The warnings of the library repeat the errors below, in other words.
_logger = logging.getLogger("keystoneauth")
_logger.addHandler(logging.NullHandler())
_logger.propagate = False


class LoginOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options of keystoneauth1 for a service. The text form has no values, because they contain a password."""

    where: str  # file and section, for errors
    auth_type: str  # name of a plug-in of keystoneauth1, such as "password"; empty: no authentication
    values: Mapping[str, str] = {}  # all texts of the section with the login, by option
    service_type: str = "placement"
    service_name: str | None = None
    valid_interfaces: tuple[str, ...] = ("internal", "public")  # in order of preference
    region_name: str | None = None
    endpoint_override: str | None = None
    cafile: str | None = None
    certfile: str | None = None
    keyfile: str | None = None
    insecure: bool = False
    timeout_s: float | None = None

    def __repr__(self) -> str:
        return f"LoginOptions({self.where}, auth_type={self.auth_type!r})"


class KeystoneLogin:
    """The login of a client: it fetches tokens, and renews them before they expire. Threads may share it.

    Args:
        options: the options of the section.
        timeout_s: limit for an answer of Keystone, unless the options have one.
        outage: builds the error after Keystone gave no token, from the problem.

    Raises:
        BadSettings: an option is missing or unknown, or the extra is not installed.
    """

    def __init__(
        self, options: LoginOptions, *, timeout_s: float, outage: Callable[[str], Unavailable] = PlacementGone
    ) -> None:
        try:
            from keystoneauth1 import loading
            from keystoneauth1.exceptions import CatalogException, ClientException
            from keystoneauth1.session import Session
        except ModuleNotFoundError as error:
            problem = f"needs {error.name}: {extra_hint('keystone')}"
            raise BadSettings(f"{options.where} auth_type", problem) from None
        self._options = options
        self._outage = outage
        self._client_exception: type[Exception] = ClientException
        self._catalog_exception: type[Exception] = CatalogException
        try:
            loader: Any = loading.get_plugin_loader(options.auth_type)
        except ClientException:
            problem = f"must name a plug-in of keystoneauth1, got {quote_value(options.auth_type)}"
            raise BadSettings(f"{options.where} auth_type", problem) from None
        try:
            self._plugin: Any = loader.load_from_options(**_values_of(loader.get_options(), options.values))
        except (ClientException, ValueError) as error:
            # Its message has the names of missing options, and no values.
            raise BadSettings(options.where, f"cannot be used to log in: {first_line(error)}") from None
        paths = ssl.get_default_verify_paths()
        trusted = options.cafile or paths.cafile or paths.capath or True
        cert = (options.certfile, options.keyfile) if options.certfile and options.keyfile else options.certfile
        self._session: Any = Session(
            auth=self._plugin,
            verify=False if options.insecure else trusted,
            cert=cert,
            timeout=options.timeout_s or timeout_s,
            user_agent="roost",
        )

    def headers(self) -> Mapping[str, str]:
        """Return the headers of a request, with a valid token.

        Raises:
            Unavailable: Keystone does not answer, or refuses the login.
        """
        try:
            return self._session.get_auth_headers() or {}
        except (self._client_exception, OSError) as error:
            raise self._outage(self._problem_of(error)) from None

    def renew(self) -> None:
        """Fetch a new token for the next request, because the present one was refused."""
        self._plugin.invalidate()

    def find_endpoint(self) -> str:
        """Return the URL of the service: the override of the options, else from Keystone's catalog.

        Raises:
            BadSettings: the catalog has no such endpoint.
            Unavailable: Keystone does not answer, or refuses the login.
        """
        options = self._options
        if options.endpoint_override:
            return options.endpoint_override
        try:
            url = self._session.get_endpoint(
                service_type=options.service_type,
                service_name=options.service_name,
                interface=list(options.valid_interfaces),
                region_name=options.region_name,
            )
        except self._catalog_exception:
            url = None
        except (self._client_exception, OSError) as error:
            raise self._outage(self._problem_of(error)) from None
        if not url:
            region = f" in region {options.region_name}" if options.region_name else ""
            interfaces = " or ".join(options.valid_interfaces)
            problem = f"finds no endpoint of the service {options.service_type}{region}, {interfaces}, in the catalog"
            raise BadSettings(options.where, problem)
        return str(url)

    def check(self) -> None:
        """Log in once, at the start.

        Raises:
            BadSettings: Keystone refuses the login.
            Unavailable: Keystone does not answer.
        """
        try:
            self._session.get_auth_headers()
        except (self._client_exception, OSError) as error:
            if _status_of(error) in _REFUSALS:
                raise BadSettings(self._options.where, f"cannot log in: {self._problem_of(error)}") from None
            raise self._outage(self._problem_of(error)) from None

    def _problem_of(self, error: Exception) -> str:
        """Describe an error of Keystone, without its message: it can contain parts of the request."""
        address = _LOGIN_IN_URL.sub("//", self._options.values.get("auth_url", "its address"))
        status = _status_of(error)
        if status in {401, 403}:
            return f"Keystone at {address} refuses the user and password of {self._options.where}: status {status}"
        if status is not None:
            return f"Keystone at {address} answers with status {status}"
        return f"Keystone at {address} does not answer: {type(error).__name__}"


def tls_context(options: LoginOptions) -> ssl.SSLContext:
    """Return the TLS context for requests to the service.

    Raises:
        BadSettings: a file of certificates cannot be used.
    """
    try:
        context = ssl.create_default_context(cafile=options.cafile)
        if options.insecure:
            context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        if options.certfile:
            context.load_cert_chain(options.certfile, options.keyfile)
    except OSError as error:  # ssl.SSLError, too
        problem = f"cafile, certfile or keyfile cannot be used: {error.strerror or error}"
        raise BadSettings(options.where, problem) from None
    return context


def _values_of(wanted: Any, values: Mapping[str, str]) -> dict[str, Any]:
    """Return the options of a plug-in, by their current or older names."""
    found = {}
    for option in wanted:
        names = (option.name, *(old.name for old in option.deprecated))
        text = next((values[name] for each in names if (name := each.replace("-", "_")) in values), None)
        if text is not None:
            found[option.dest] = option.type(text)
    return found


def _status_of(error: Exception) -> int | None:
    status = getattr(error, "http_status", None)
    return status if isinstance(status, int) else None
