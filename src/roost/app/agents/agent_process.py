"""The agent process: drivers, journals, and the connections to the server and its Placement."""

import os
import random
import signal
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from http import HTTPStatus
from itertools import count
from pathlib import Path
from urllib.parse import quote

import msgspec

from roost import __version__
from roost.client.agent_server import HttpServer, InstanceLookup
from roost.client.agent_token import AgentToken
from roost.client.report_http import ReportHttp
from roost.client.server_list import ServerList
from roost.compute.agent.agent_journal import Journal
from roost.compute.agent.execute_order import OrderExecutor
from roost.compute.agent.identity import Identity
from roost.compute.agent.runtime import AgentRuntime, Pace, RunningAgent
from roost.compute.agent.saved_images import SavedImages
from roost.compute.agent.state_machine import Agent
from roost.compute.driver import load
from roost.compute.inventory.device_providers import DeviceProviders
from roost.compute.inventory.monitors import Monitors
from roost.compute.inventory.provider_config import ProviderConfigs, read
from roost.compute.inventory.reshape import Reshaper
from roost.compute.inventory.resource_tracker import Tracker
from roost.compute.report.placement_session import Http
from roost.compute.report.report_client import ReportClient
from roost.errors import BadSettings, PlacementGone, quote_value
from roost.machine import SystemClock, SystemRandom, find_address
from roost.model.names import is_host_name, is_text, uuid_text
from roost.model.placement.placement_api import Answer
from roost.model.settings.agent_settings import Agent as AgentSettings
from roost.model.settings.log_settings import Log
from roost.model.struct_decoders import prepare_decoders
from roost.observe import log
from roost.ports import Clock

_SERVERS_SETTING = "agent.servers"  # which --server overrides
_PLACEMENT = "/placement"  # path of the Placement API on the server
# Only servers with noauth2 read this header. Reshapes need the role service.
_ROLES = "admin,service"
_FLEET_NAMESPACE = uuid.UUID("5b1f7d0a-6f0e-4d7c-9a55-1c1c6a4f0c11")  # namespace of the node uuids of a fleet
_LOGGED_MAX = 100  # agents of one process whose start is logged
_SPREAD = (0.75, 1.25)  # range of a random factor on periods, so that agents act at different times


class AgentOptions(msgspec.Struct, frozen=True, kw_only=True):
    """The options of an agent process."""

    servers: tuple[str, ...]  # URLs, without ``/v1`` or ``/placement``; the agents use one at a time
    token: str
    driver: str
    options: dict[str, str] = {}  # of the driver
    hosts: tuple[str, ...]  # names of the services, one per agent
    cell: str = ""
    state: str | None = None  # folder of the journals; None: in memory
    settings: AgentSettings = AgentSettings()
    is_packing: bool = False  # whether guests prefer the memory nodes with the least free memory
    log: Log = Log()


def run_agents(
    options: AgentOptions,
    *,
    read_token: Callable[[], str] | None = None,
    on_ready: Callable[[], None] = lambda: None,
) -> None:
    """Run agents until a signal stops them. A second signal ends the process at once.

    Args:
        options: the server, the driver and the hosts.
        read_token: reads the token from its file again; None: it cannot change.
        on_ready: called when the agents start.

    Raises:
        BadSettings: an option is wrong, or the server refuses an agent.
        AccessDenied: the server refuses the token of an agent.
        Conflict: another agent runs for a host.
        ReshapeNeeded, ReshapeFailed: see ``Tracker``.
        JournalLost: a journal cannot be used.
    """
    for host in options.hosts:
        if "/" in host or not is_host_name(host):
            problem = f"must be a name of 1 to 255 visible ASCII characters without a slash, got {quote_value(host)}"
            raise BadSettings("--host", problem)
    if not is_text(options.cell, length_max=255):
        raise BadSettings("--cell", f"must be a name of 255 letters at most, got {quote_value(options.cell)}")
    log.configure(options.log)
    stop = threading.Event()
    with _stop_on_signals(stop), ExitStack() as stack:
        servers = ServerList(options.servers, setting=_SERVERS_SETTING)
        token = AgentToken(options.token, read=read_token)
        server = HttpServer(servers, token=token, draw=random.random, pause=lambda seconds: not stop.wait(seconds))
        stack.callback(server.close)
        placement = SharedHttp(
            servers,
            lambda url: ReportHttp(
                url + _PLACEMENT, headers={**token.headers, "x-roles": _ROLES}, setting=_SERVERS_SETTING
            ),
            token,
        )
        stack.callback(placement.close)
        agents = [
            _build_agent(options, host, server=server, placement=placement, stack=stack) for host in options.hosts
        ]
        prepare_decoders()
        on_ready()
        for host in options.hosts[:_LOGGED_MAX]:
            log.event("agent_begins", host=host, driver=options.driver, server=", ".join(options.servers))
        AgentRuntime(agents, server, clock=SystemClock(), pace=_pace(options.settings)).run(stop)


class SharedHttp:
    """A pool of Placement connections, with one per concurrent request.

    Args:
        servers: their URLs. After a request without an answer, the next request goes to the next server.
        connect: opens a connection to a URL, with the token in use.
        token: of all connections; a refused one is read again. None: it never changes.
    """

    def __init__(
        self, servers: ServerList, connect: Callable[[str], ReportHttp], token: AgentToken | None = None
    ) -> None:
        self._servers, self._connect = servers, connect
        self._token = token or AgentToken(None)
        self._lock = threading.Lock()
        self._idle: list[tuple[tuple[str, str], ReportHttp]] = []  # by URL and token

    def ask(self, method: str, path: str, body: object = None, *, version: str) -> Answer:
        """Send one request; see ``Http``."""
        url, token = self._servers.current, self._token.text
        connection = self._take((url, token)) or self._connect(url)
        try:
            answer = connection.ask(method, path, body, version=version)
        except BaseException as error:
            connection.close()
            if isinstance(error, PlacementGone):
                self._servers.advance(url)
            raise
        with self._lock:
            self._idle.append(((url, token), connection))
        if answer.status == HTTPStatus.UNAUTHORIZED and self._token.replace(token):
            return self.ask(method, path, body, version=version)
        return answer

    def close(self) -> None:
        """Close the idle connections."""
        with self._lock:
            for _, connection in self._idle:
                connection.close()

    def _take(self, key: tuple[str, str]) -> ReportHttp | None:
        """Take an idle connection to a server with a token; close all others."""
        with self._lock:
            idle, self._idle = self._idle, []
            for at, connection in idle:
                if at == key:
                    self._idle.append((at, connection))
                else:
                    connection.close()
            return self._idle.pop()[1] if self._idle else None


def _pace(settings: AgentSettings) -> Pace:
    return Pace(
        work_threads=settings.work_threads,
        driver_timeout_s=settings.driver_timeout_s,
        update_s=settings.update_s,
        retry_s=settings.update_retry_s,
        images_s=settings.sync_power_state_interval,
        stop_s=settings.stop_s,
    )


def _build_agent(
    options: AgentOptions, host: str, *, server: HttpServer, placement: SharedHttp, stack: ExitStack
) -> RunningAgent:
    path = None if options.state is None else journal_path(options.state, host)
    journal = Journal(path)
    stack.callback(journal.close)
    settings = options.settings
    driver = load(options.driver, options.options, settings.terms)
    report = report_client(placement, settings, clock=SystemClock())
    configs = ProviderConfigs(
        read(settings.provider_config_location),
        warn=lambda problem: log.event("provider_config", host=host, problem=problem),
    )
    devices = DeviceProviders(report, is_on=settings.pci_in_placement, specs=settings.device_specs)
    reshaper = Reshaper(
        driver,
        report,
        configs=configs,
        terms=settings.reshape,
        sleep=time.sleep,
        uniform=random.uniform,
        devices=devices,
    )
    # Without a journal, only a uuid derived from the name survives a restart.
    numbers = count()
    new_uuid = (lambda: str(uuid.uuid5(_FLEET_NAMESPACE, f"{host}/{next(numbers)}"))) if path is None else _fresh_uuid
    instances = InstanceLookup(server, host)
    tracker = Tracker(
        host,
        driver=driver,
        report=report,
        reshaper=reshaper,
        journal=journal,
        monitors=Monitors(settings.compute_monitors),
        periodic_reshape=settings.reshape.periodic_reshape,
        instances=instances,
        devices=devices,
        is_packing=options.is_packing,
        host_ip=settings.my_ip or find_address(),
        rack=settings.rack,
        terms=settings.terms,
        new_uuid=new_uuid,
    )
    run = _fresh_uuid()
    identity = Identity(host=host, run=run, driver=options.driver, software=f"roost {__version__}", cell=options.cell)
    agent = Agent(
        identity,
        journal,
        driver_timeout_s=settings.driver_timeout_s,
        sync_s=settings.sync_power_state_interval,
        spread=random.uniform(*_SPREAD),
    )
    executor = OrderExecutor(host, run=run, driver=driver, journal=journal, use_of=tracker.use)
    images = SavedImages(host, driver=driver, instances=instances)
    return RunningAgent(agent, driver, executor, tracker, images)


def report_client(placement: Http, settings: AgentSettings, *, clock: Clock) -> ReportClient:
    """Return an agent's client of a Placement, configured by the agent's settings."""
    return ReportClient(
        placement,
        clock=clock,
        sleep=time.sleep,
        uniform=random.uniform,
        refresh_s=settings.resource_provider_association_refresh,
        sharing_max=settings.sharing_providers_max_uuids_per_request,
    )


def journal_path(folder: str, host: str) -> Path:
    """Return the path of the journal for a host."""
    return Path(folder) / f"{quote(host, safe='')}.db"


def _fresh_uuid() -> str:
    return uuid_text(SystemRandom().uuids(1)[0])


@contextmanager
def _stop_on_signals(stop: threading.Event) -> Iterator[None]:
    def request_stop(number: int, _frame: object) -> None:
        if stop.is_set():
            os._exit(128 + number)
        stop.set()

    before = {number: signal.signal(number, request_stop) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
