"""A remote Placement behind a server: one thread claims resources, another copies its hosts."""

from collections.abc import Mapping
from threading import Event, Thread

from roost.client import host_mirror
from roost.client.host_mirror import Mirror
from roost.client.placement_http import TOKEN_VARIABLE, Connection
from roost.client.remote_claims import RemotePlacement
from roost.errors import RoostError
from roost.model.settings.roost_settings import Settings
from roost.observe import log
from roost.placement.current import Current
from roost.placement.deciding_thread import Serving


def connect_remote(settings: Settings, environ: Mapping[str, str]) -> "RemoteFollower":
    """Connect to the remote Placement of the settings, with the token of the environment.

    Raises:
        BadSettings: the server at the URL has no Placement API, or its version is too old.
        PlacementGone: the remote Placement does not answer.
    """
    section = settings.placement
    connections = [
        Connection(section.remote_url, token=environ.get(TOKEN_VARIABLE), timeout_s=section.remote_timeout_s)
        for _ in range(2)
    ]
    return RemoteFollower(*connections, interval_s=section.remote_sync_s)


class RemoteFollower:
    """The remote Placement, and a thread that copies its hosts periodically.

    Args:
        claims, hosts: connections, one per thread.
        interval_s: seconds between two copies, > 0.
    """

    def __init__(self, claims: Connection, hosts: Connection, *, interval_s: float) -> None:
        self.placement = RemotePlacement(claims)
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
        host_mirror.write(current, self._mirror.read())

    def start(self, serving: Serving) -> None:
        """Start to copy the hosts periodically."""
        self._thread = Thread(target=self._work, args=(serving,), name="remote_placement", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread."""
        self._stopped.set()
        if self._thread is not None:
            self._thread.join()

    def sync_hosts(self, serving: Serving) -> None:
        """Copy the hosts once, beside a running server.

        Raises:
            RoostError: the remote Placement does not answer, or its hosts cannot be stored.
        """
        specs = self._mirror.read()
        try:
            if specs:
                serving.run(lambda current: host_mirror.write(current, specs))
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
