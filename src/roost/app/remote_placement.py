"""A remote Placement behind a server: one thread claims resources, another copies its hosts."""

import os
from collections.abc import Mapping
from pathlib import Path
from threading import Event, Thread

from roost.client import host_mirror
from roost.client.host_mirror import Mirror
from roost.client.keystone_login import KeystoneLogin, LoginOptions, tls_context
from roost.client.placement_http import CATALOG, SETTING, TOKEN_VARIABLE, Connection
from roost.client.remote_claims import RemotePlacement
from roost.compat.ini import read_ini
from roost.errors import BadSettings, RoostError
from roost.model.provider import ProviderSpec
from roost.model.settings.roost_settings import Settings
from roost.nova.service_login import read_login_options
from roost.observe import log
from roost.placement.current import Current
from roost.placement.deciding_thread import Serving
from roost.settings import find_nova_conf


def connect_remote(settings: Settings, environ: Mapping[str, str]) -> "RemoteFollower":
    """Connect to the remote Placement of the settings.

    Raises:
        BadSettings: the server at the URL has no Placement API, or its version is too old; or the login is wrong.
        PlacementGone: the remote Placement or Keystone does not answer.
    """
    connections = open_connections(settings, environ, count=2)
    # Nova's databases know the hosts: a provider has the name of a node, and not that of its service.
    has_hosts, interval_s = not settings.nova.scheduler, settings.placement.remote_sync_s
    return RemoteFollower(*connections, interval_s=interval_s, has_hosts=has_hosts)


def open_connections(settings: Settings, environ: Mapping[str, str], *, count: int) -> list[Connection]:
    """Return connections to the remote Placement of the settings, with one login.

    The token is that of the environment, else section ``placement`` of nova.conf has the login.

    Raises:
        BadSettings, PlacementGone: as for ``connect_remote``.
    """
    section, token = settings.placement, environ.get(TOKEN_VARIABLE)
    options = _read_login(environ)
    timeout_s = section.remote_timeout_s if options is None else options.timeout_s or section.remote_timeout_s
    login = None
    if options is not None and options.auth_type and not (token and section.remote_url != CATALOG):
        login = KeystoneLogin(options, timeout_s=timeout_s)
        login.check()
    url = _find_url(section.remote_url, options, login)
    tls = None if options is None else tls_context(options)
    return [
        Connection(url, token=token, timeout_s=timeout_s, login=None if token else login, tls=tls) for _ in range(count)
    ]


def _read_login(environ: Mapping[str, str]) -> LoginOptions | None:
    """Return the options of section ``placement`` of nova.conf; None: it has none."""
    path = find_nova_conf(environ, os.path.exists)
    if path is None:
        return None
    return read_login_options(read_ini(Path(path)), "placement", service_type="placement")


def _find_url(remote_url: str, options: LoginOptions | None, login: KeystoneLogin | None) -> str:
    if remote_url != CATALOG:
        return remote_url
    if login is not None:
        return login.find_endpoint()
    if options is not None and options.endpoint_override:
        return options.endpoint_override
    raise BadSettings(SETTING, f"{CATALOG!r} needs auth_type in section [placement] of a nova.conf")


class RemoteFollower:
    """The remote Placement, and a thread that copies its hosts periodically.

    Args:
        claims, hosts: connections, one per thread.
        interval_s: seconds between two copies, > 0.
        has_hosts: whether each new root provider is a host.
    """

    def __init__(self, claims: Connection, hosts: Connection, *, interval_s: float, has_hosts: bool = True) -> None:
        self._has_hosts = has_hosts
        self.placement = RemotePlacement(claims)
        self._connections = (claims, hosts)
        self._mirror = Mirror(hosts)
        self._interval_s = interval_s
        self._stopped = Event()
        self._thread: Thread | None = None
        self._problem = ""

    def load_hosts(self, current: Current) -> None:
        """Copy the hosts once, before the server starts.

        Raises:
            PlacementGone: the remote Placement does not answer.
        """
        host_mirror.write(current, self.read_specs(), has_hosts=self._has_hosts)

    def read_specs(self) -> list[ProviderSpec]:
        """Return new and changed providers of the remote Placement, parents before children.

        Raises:
            PlacementGone: the remote Placement does not answer.
        """
        return self._mirror.read()

    def start(self, serving: Serving) -> None:
        """Start to copy the hosts periodically."""
        self._thread = Thread(target=self._work, args=(serving,), name="remote_placement", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread, and close the connections."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()
        for connection in self._connections:
            connection.close()

    def sync_hosts(self, serving: Serving) -> None:
        """Copy the hosts once, beside a running server.

        Raises:
            RoostError: the remote Placement does not answer, or its hosts cannot be stored.
        """
        specs = self.read_specs()
        try:
            if specs:
                serving.run(lambda current: host_mirror.write(current, specs, has_hosts=self._has_hosts))
        except BaseException:
            self._mirror.forget()
            raise

    def _work(self, serving: Serving) -> None:
        while not self._stopped.wait(self._interval_s):
            problem = ""
            try:
                self.sync_hosts(serving)
            except RoostError as error:
                problem = str(error)
            except Exception as error:  # noqa: BLE001  # the next copy may succeed
                log.fault("remote_placement", error)
            if problem != self._problem:
                self._problem = problem
                log.write(
                    "placement_fails" if problem else "placement_is_well", {"problem": problem} if problem else {}
                )
