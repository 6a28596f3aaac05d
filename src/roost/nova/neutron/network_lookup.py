"""Looks up the networks of requests at Neutron, in threads of its own.

.. code-block:: text

    submit ─▶ queue ─▶ thread ─▶ port, subnet, network ─▶ FoundNetwork of each requested network
                                                       ─▶ or Failure: the exception that Nova's scheduler raises

The threads, the waiting requests, the time of a request and the remembered subnets have limits. So a silent Neutron
delays requests with networks only, and each of them ends.
"""

import threading
from collections.abc import Callable, Sequence
from functools import partial
from queue import Full, Queue
from typing import Protocol

import msgspec

from roost.compat.ini import Ini
from roost.errors import RoostError
from roost.model.settings.roost_settings import Settings
from roost.nova.messages.no_valid_host import no_valid_host
from roost.nova.messages.request_spec import RequestedNetwork, SpecRequest
from roost.nova.neutron.neutron_api import NeutronAccess, NeutronApi, NeutronRefusal
from roost.nova.neutron.neutron_options import read_neutron_options
from roost.nova.rpc.rpc_failure import Failure, build_failure, internal_error
from roost.observe import log

_THREADS = 8
_WAITING_MAX = 1000
_REQUEST_S = 60.0  # limit for all answers to one request, the time in the queue included
_SUBNETS_MAX = 10_000
_STOP_S = 1.0


class FoundNetwork(msgspec.Struct, frozen=True, kw_only=True):
    """A requested network, as Neutron describes it."""

    name: str  # "network UUID" or "subnet UUID"
    segments: tuple[str, ...] = ()  # one of them is enough; empty: it is not routed
    is_remote_managed: bool = False


class LookupOutcome(Protocol):
    """The destination of the result of a lookup."""

    def take_networks(self, found: tuple[FoundNetwork, ...]) -> None:
        """Take the networks of the request."""

    def refuse(self, failure: Failure) -> None:
        """Take the failure of the call."""


class _LookupFailed(Exception):
    """A lookup has no result."""

    def __init__(self, failure: Failure) -> None:
        self.failure = failure
        super().__init__(failure.message)


class _Question(msgspec.Struct, frozen=True, kw_only=True):
    """A request in the queue."""

    networks: tuple[RequestedNetwork, ...]
    outcome: LookupOutcome
    until_s: float


class NetworkLookup:
    """Looks up the networks of requests.

    Args:
        connect: opens a connection for one thread.
        elapsed_s: returns the seconds of a monotonic clock.
        threads_max: questions in progress.
        waiting_max: requests in the queue; further ones fail at once.
    """

    def __init__(
        self,
        connect: Callable[[], NeutronApi],
        *,
        elapsed_s: Callable[[], float],
        threads_max: int = _THREADS,
        waiting_max: int = _WAITING_MAX,
        request_s: float = _REQUEST_S,
    ) -> None:
        self._connect, self._elapsed_s, self._request_s = connect, elapsed_s, request_s
        self._threads_max = threads_max
        self._waiting: Queue[_Question | None] = Queue(waiting_max)
        self._lock = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._is_stopped = False
        self._is_failing = False
        # Neutron refuses to change the segment of a subnet that has one.
        self._segment_of_subnet: dict[str, str] = {}

    def submit(self, networks: Sequence[RequestedNetwork], outcome: LookupOutcome) -> None:
        """Look up the networks of a request; the first call starts the threads."""
        question = _Question(networks=tuple(networks), outcome=outcome, until_s=self._elapsed_s() + self._request_s)
        self._start()
        try:
            self._waiting.put_nowait(question)
        except Full:
            text = f"Neutron cannot be used: {self._waiting.maxsize:,} requests wait for it already"
            outcome.refuse(_no_answer(text))

    def stop(self) -> None:
        """End the threads after their current questions; requests in the queue get no result."""
        with self._lock:
            self._is_stopped, threads = True, list(self._threads)
        for _ in threads:
            try:
                self._waiting.put_nowait(None)
            except Full:
                break  # The threads look at ``_is_stopped`` after each request.
        for thread in threads:
            thread.join(_STOP_S)

    def _start(self) -> None:
        with self._lock:
            if self._threads or self._is_stopped:
                return
            self._threads = [
                threading.Thread(target=self._work, name=f"neutron_{number}", daemon=True)
                for number in range(self._threads_max)
            ]
            for thread in self._threads:
                thread.start()

    def _work(self) -> None:
        api: NeutronApi | None = None
        while not self._is_stopped:
            question = self._waiting.get()
            if question is None:
                break
            api, send = self._look_up(api, question)
            try:
                send()
            except Exception as error:  # noqa: BLE001  # the thread must go on, even if an outcome takes no result
                log.fault("neutron", error)
        _close(api)

    def _look_up(self, api: NeutronApi | None, question: _Question) -> tuple[NeutronApi | None, Callable[[], None]]:
        """Return the connection for the next request, and the function that sends the result of this one."""
        try:
            api = api or self._connect()
            found = self._find(api, question)
        except RoostError as error:
            # The next request finds the address in the catalog again.
            _close(api)
            self._note(str(error))
            return None, partial(question.outcome.refuse, _no_answer(str(error)))
        except _LookupFailed as error:
            self._note("")
            return api, partial(question.outcome.refuse, error.failure)
        except Exception as error:  # noqa: BLE001  # the caller waits for a result
            log.fault("neutron", error)
            return api, partial(question.outcome.refuse, internal_error())
        self._note("")
        return api, partial(question.outcome.take_networks, found)

    def _find(self, api: NeutronApi, question: _Question) -> tuple[FoundNetwork, ...]:
        """Look up each requested network.

        Source:
            nova/scheduler/request_filter.py, routed_networks_filter and remote_managed_ports_filter.
        """

        def has_time() -> bool:
            return self._elapsed_s() < question.until_s and not self._is_stopped

        found: dict[RequestedNetwork, FoundNetwork] = {}
        for requested in question.networks:
            if requested not in found:
                found[requested] = self._find_one(api, requested, has_time)
        return tuple(found.values())

    def _find_one(self, api: NeutronApi, requested: RequestedNetwork, has_time: Callable[[], bool]) -> FoundNetwork:
        network, is_remote_managed = requested.network, False
        if requested.port:
            try:
                port = api.port(requested.port, has_time=has_time)
            except NeutronRefusal as error:
                raise _LookupFailed(_port_failure(error, requested.port)) from error
            network, is_remote_managed = port.network, port.is_remote_managed
            if port.subnet is not None:
                return FoundNetwork(
                    name=f"subnet {port.subnet}",
                    segments=self._find_segment(api, port.subnet, has_time),
                    is_remote_managed=is_remote_managed,
                )
        assert network, "a requested network has a port or a network"
        name = f"network {network}"
        try:
            segments = api.segments_of_network(network, has_time=has_time)
        except NeutronRefusal as error:
            raise _LookupFailed(_segment_failure(error, name)) from error
        return FoundNetwork(name=name, segments=segments, is_remote_managed=is_remote_managed)

    def _find_segment(self, api: NeutronApi, subnet: str, has_time: Callable[[], bool]) -> tuple[str, ...]:
        known = self._segment_of_subnet
        with self._lock:
            segment = known.get(subnet)
        if segment is None:
            try:
                segment = api.segment_of_subnet(subnet, has_time=has_time)
            except NeutronRefusal as error:
                raise _LookupFailed(_segment_failure(error, f"subnet {subnet}")) from error
            if segment is None:
                return ()
            with self._lock:
                if len(known) >= _SUBNETS_MAX:
                    known.pop(next(iter(known)))
                known[subnet] = segment
        return (segment,)

    def _note(self, problem: str) -> None:
        """Log when Neutron stops to answer, and when it answers again."""
        with self._lock:
            was_failing, self._is_failing = self._is_failing, bool(problem)
        if problem and not was_failing:
            log.event("neutron_fails", problem=problem)
        elif was_failing and not problem:
            log.event("neutron_is_well")


def open_lookup(ini: Ini, settings: Settings, *, timeout_s: float, elapsed_s: Callable[[], float]) -> NetworkLookup:
    """Return the lookup of a nova.conf. It connects later, so Neutron need not answer yet.

    Unless networks may be routed, it needs no login; later settings may change that.

    Raises:
        BadSettings: networks may be routed, and the login at Neutron is missing or invalid.
    """

    def access() -> NeutronAccess:
        return NeutronAccess(read_neutron_options(ini), timeout_s=timeout_s)

    if settings.scheduler.query_placement_for_routed_network_aggregates:
        return NetworkLookup(access().connect, elapsed_s=elapsed_s)
    return NetworkLookup(lambda: access().connect(), elapsed_s=elapsed_s)


def needs_lookup(spec: SpecRequest, settings: Settings) -> bool:
    """Return whether a request has networks that may be routed."""
    may_route = settings.scheduler.query_placement_for_routed_network_aggregates
    return may_route and bool(spec.requested_networks) and not spec.is_rebuild


def no_aggregates(name: str) -> Failure:
    """Return the failure if the segments of a network or subnet are unknown.

    Args:
        name: ``network UUID`` or ``subnet UUID``.
    """
    return no_valid_host(f"Scheduling failed: Aggregates not found for the {name}")


def _no_answer(text: str) -> Failure:
    """Return the failure after no answer.

    Conductors do not import its class, so they raise ``RemoteError``. Of all exceptions without a host, only this one
    leaves an instance active whose live migration fails.
    """
    return build_failure("ConnectFailure", "keystoneauth1.exceptions.connection", text)


def _port_failure(error: NeutronRefusal, port: str) -> Failure:
    if error.status == 404:
        return build_failure(
            "PortNotFound", "nova.exception", f"Port id {port} could not be found.", port_id=port, code=404
        )
    text = f"Failed to access port {port}: {error}"
    return _access_failure(error) or build_failure("NovaException", "nova.exception", text, code=500)


def _segment_failure(error: NeutronRefusal, name: str) -> Failure:
    return _access_failure(error) or no_aggregates(name)


def _access_failure(error: NeutronRefusal) -> Failure | None:
    """Return the failure if Neutron refuses the login of the service."""
    if error.status == 401:
        text = "Networking client is experiencing an unauthorized exception."
        return build_failure("NeutronAdminCredentialConfigurationInvalid", "nova.exception", text, code=400)
    if error.status == 403:
        return build_failure("Forbidden", "nova.exception", str(error), code=403)
    return None


def _close(api: NeutronApi | None) -> None:
    if api is not None:
        api.close()
