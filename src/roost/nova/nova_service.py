"""The service nova-scheduler: follows Nova's databases, and serves Nova's message queue.

.. code-block:: text

    FleetReader.read ─▶ NovaPicture ─▶ fleet_sync      every second: hosts, aggregates, instances
    RpcServer ─▶ SchedulerService ─▶ deciding thread   every call
                                  ─▶ SelectionNotifier if nova.conf wants notifications

The queue is served only once the databases were read: until then no host is known.
"""

import math
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from threading import Event, Thread
from typing import TypeVar

from msgspec.structs import replace

from roost.compat.ini import Ini, read_ini
from roost.errors import RoostError, Unavailable
from roost.model.settings.nova_settings import Nova
from roost.model.writes import Write
from roost.nova.database.database_options import read_database_options
from roost.nova.database.fleet_reader import FleetReader
from roost.nova.database.nova_fleet import NovaInstance
from roost.nova.fleet_sync import BATCH, find_unplaced, plan_instances, write_aggregates, write_hosts
from roost.nova.instance_sync import find_moved, find_surplus, plan_departures, plan_remote_places
from roost.nova.neutron.network_lookup import open_lookup
from roost.nova.notifications.notification_options import find_foreign, read_notification_options
from roost.nova.notifications.selection_notifier import SelectionNotifier
from roost.nova.nova_chores import NovaChores
from roost.nova.nova_picture import NovaPicture
from roost.nova.rpc.broker_options import read_broker_options
from roost.nova.rpc.rpc_server import RpcServer
from roost.nova.scheduler_service import SchedulerService
from roost.nova.shadow import Shadow
from roost.observe import log
from roost.placement.current import Current
from roost.placement.deciding_thread import Serving
from roost.placement.job import Task
from roost.placement.write_plan import Plan
from roost.ports import Clock
from roost.product import Roost

T = TypeVar("T")
_PlanPlaces = Callable[[Current, Sequence[NovaInstance]], tuple[Write, ...]]
# Seconds for calls in progress at the end, and for a reading.
_STOP_S = 10.0
# Pause after the databases did not answer.
_PAUSE_S = 5.0
# Shortest pause after a reading: each compute sends messages about changes, and all of them together need one reading.
_HINT_PAUSE_S = 0.25
# Attempts to write hosts that other processes write at the same time.
_TRIES = 5
# With a remote Placement: time between two comparisons of all instances, and the time that Nova has to store the host
# of a decision. A build can wait for others on its host.
_COMPARE_EVERY_S, _CONFIRM_S = 60.0, 600.0
# Instances to compare in one task: a few milliseconds.
_COMPARE_MAX = 1000


class NovaFollower:
    """A thread that reads Nova's databases, and writes the changes to the columns.

    Args:
        reader: the databases.
        chores: writes to the databases, after each reading.
        shadow: compares choices after each reading, if given.
        serving: the deciding thread.
        poll_s: seconds between two readings.
        now_s: returns seconds since the epoch.
        on_first: called once, after the first reading is in the columns.
        is_remote: whether a remote Placement has the allocations of instances.
    """

    def __init__(
        self,
        reader: FleetReader,
        serving: Serving,
        *,
        chores: NovaChores,
        shadow: Shadow | None,
        poll_s: float,
        now_s: Callable[[], float],
        on_first: Callable[[], None],
        is_remote: bool = False,
    ) -> None:
        self._reader = reader
        self._chores = chores
        self._shadow = shadow
        self._poll_s = poll_s
        self._serving = serving
        self._now_s = now_s
        self._on_first: Callable[[], None] | None = on_first
        self._is_remote = is_remote
        self._picture = NovaPicture(keeps_instances=is_remote)
        self._compared_at_s = -math.inf
        self._hinted = Event()
        self._stopped = Event()
        self._is_failing = False
        self._thread = Thread(target=self._work, name="nova_follower", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread after its current reading. A database that never answers delays the end only for a time."""
        self._stopped.set()
        self._hinted.set()
        if self._thread.ident is not None:
            self._thread.join(_STOP_S)
        if self._thread.is_alive():
            return  # It still uses the connections; the process closes them.
        self._reader.close()
        self._chores.close()

    def hint(self, part: str) -> None:
        """Read the databases soon: a message says that a part of them changed."""
        if part == "aggregates":
            self._reader.refresh_aggregates()
        self._hinted.set()

    def follow(self) -> None:
        """Read the databases once, and write what changed.

        Raises:
            RoostError: the API database, or Roost's own, does not answer.
        """
        picture, run = self._picture, self._serving.run
        started_s = self._now_s()
        changes = self._reader.read()
        picture.add(changes, now_s=self._now_s())
        self._write_aggregates()
        self._write_hosts()
        if self._shadow is not None:
            self._shadow.note_hosts({each.uuid: each.host for each in changes.instances})
            run(self._shadow.compare)
        if self._is_remote:
            self._compare_instances(started_s)
        self._write_places(before_s=started_s)

    def _write_aggregates(self) -> None:
        """Write the aggregates that are due."""
        due = self._picture.due_aggregates
        while due:
            aggregates = list(islice(due.values(), BATCH))
            self._serving.run(partial(write_aggregates, aggregates=aggregates))
            for aggregate in aggregates:
                del due[aggregate.uuid]

    def _write_hosts(self) -> None:
        """Write the nodes that are due.

        Several schedulers read the same changes at the same time. The one that loses a race over a host compares again,
        and mostly has nothing left to write.
        """
        picture, tries = self._picture, _TRIES
        while True:
            try:
                if not self._serving.run(lambda current: write_hosts(current, picture)):
                    return
            except Unavailable:
                tries -= 1
                if not tries:
                    raise

    def _compare_instances(self, now_s: float) -> None:
        """Now and then, find instances whose place in the columns was never confirmed by Nova."""
        picture = self._picture
        if not picture.is_complete or 0 <= now_s - self._compared_at_s < _COMPARE_EVERY_S:
            return
        self._compared_at_s = now_s
        instances, before_s, run = picture.instances, now_s - _CONFIRM_S, self._serving.run
        for part in _split(instances.values()):
            moved = run(partial(_find_moved, instances=part, before_s=before_s))
            picture.due_instances.update({instance.uuid: instance for instance in moved})
        for uuids in _split(run(lambda current: list(current.state.holders))):
            surplus = run(partial(_find_surplus, consumer_uuids=uuids, known=instances, before_s=before_s))
            picture.due_departures.update(dict.fromkeys(surplus))

    def _write_places(self, *, before_s: float) -> None:
        """Write the places of instances, and with a remote Placement also their departures."""
        picture, run = self._picture, self._serving.run
        plan = plan_remote_places if self._is_remote else plan_instances
        while picture.due_instances:
            instances = list(islice(picture.due_instances.values(), BATCH))
            unplaced = run(_place(plan, instances))
            if not self._is_remote:  # With a remote one, ``_compare_instances`` finds them.
                picture.note_attempt(instances, unplaced, now_s=self._now_s())
            for instance in instances:
                picture.due_instances.pop(instance.uuid, None)
        while picture.due_departures:
            uuids = list(islice(picture.due_departures, BATCH))
            if self._is_remote:
                run(_release(uuids, before_s=before_s))
            for uuid in uuids:
                picture.due_departures.pop(uuid, None)

    def _work(self) -> None:
        while not self._stopped.is_set():
            shortest_s = pause_s = _PAUSE_S
            try:
                self.follow()
            except RoostError as error:
                self._note(str(error))
            except Exception as error:  # noqa: BLE001  # the thread must go on
                log.fault("nova_follower", error)
                self._reader.forget()
            else:
                self._note("")
                pause_s = self._poll_s
                shortest_s = min(pause_s, _HINT_PAUSE_S)
                first, self._on_first = self._on_first, None
                if first is not None:
                    first()
                self._chores.work()
            self._stopped.wait(shortest_s)
            self._hinted.wait(pause_s - shortest_s)
            self._hinted.clear()

    def _note(self, problem: str) -> None:
        """Log when the databases stop to answer, and when they answer again."""
        if problem and not self._is_failing:
            log.event("nova_databases_fail", problem=problem)
        elif self._is_failing and not problem:
            log.event("nova_databases_are_well")
        self._is_failing = bool(problem)


def _split(items: Iterable[T]) -> Iterator[list[T]]:
    """Yield parts for one task each, so decisions run between them."""
    rest = iter(items)
    while part := list(islice(rest, _COMPARE_MAX)):
        yield part


def _find_moved(current: Current, *, instances: Sequence[NovaInstance], before_s: float) -> list[NovaInstance]:
    return find_moved(current.state, instances, before_s=before_s)


def _find_surplus(
    current: Current, *, consumer_uuids: Sequence[bytes], known: Container[str], before_s: float
) -> list[str]:
    return find_surplus(current.state, consumer_uuids, known, before_s=before_s)


def _place(plan: _PlanPlaces, instances: Sequence[NovaInstance]) -> Task[list[NovaInstance]]:
    """Return a task that commits the places of instances; its answer has those without one."""
    return lambda current: Plan(answer=find_unplaced(current.state, instances), writes=plan(current, instances))


def _release(uuids: Sequence[str], *, before_s: float) -> Task[None]:
    """Return a task that commits departures."""
    return lambda current: Plan(answer=None, writes=plan_departures(current.state, uuids, before_s=before_s))


class NovaService:
    """Follows the databases of a Nova and serves its queue ``scheduler``, from ``start`` to ``stop``.

    Args:
        nova_conf: path of the nova.conf, with the addresses of broker and databases.
        settings: section ``nova``.
        roost: the product; only the deciding thread uses it.
        serving: the deciding thread.
        clock: the clock of this machine.

    Raises:
        BadSettings: the file cannot be read, or lacks an address or a login.
    """

    def __init__(self, nova_conf: Path, settings: Nova, *, roost: Roost, serving: Serving, clock: Clock) -> None:
        ini = read_ini(nova_conf)
        broker, databases = read_broker_options(ini), read_database_options(ini)
        self._notifier = None if settings.shadow else _open_notifier(ini, clock)
        databases = replace(databases, timeout_s=settings.read_timeout_s)
        chores = NovaChores(databases, settings, host=broker.host, clock=clock)
        self._networks = open_lookup(ini, roost.settings, timeout_s=settings.read_timeout_s, elapsed_s=clock.elapsed_s)
        self._shadow = (
            Shadow(
                roost,
                serving,
                elapsed_s=clock.elapsed_s,
                calls_max=settings.calls_max,
                networks=self._networks,
            )
            if settings.shadow
            else None
        )
        service = SchedulerService(
            roost,
            serving,
            on_hint=self._hint,
            networks=self._networks,
            shows_decision=settings.shows_decision,
            notifier=self._notifier,
        )
        self._server = RpcServer(
            broker, self._shadow or service, calls_max=settings.calls_max, takes_copies=settings.shadow
        )
        self._follower = NovaFollower(
            FleetReader(databases, clock),
            serving,
            chores=chores,
            shadow=self._shadow,
            poll_s=settings.poll_s,
            now_s=clock.now_s,
            on_first=self._server.start,
            is_remote=roost.remote is not None,
        )

    def start(self) -> None:
        """Start to read the databases; the queue is served after the first reading."""
        if self._notifier is not None:
            self._notifier.start()
        self._follower.start()

    def stop(self) -> None:
        """Take no further calls, answer those in progress, and stop."""
        self._server.stop(_STOP_S)
        self._networks.stop()
        self._follower.stop()
        if self._notifier is not None:
            self._notifier.stop()
        if self._shadow is not None:
            log.event("nova_shadow_ends", **{str(verdict): count for verdict, count in self._shadow.counts.items()})

    def _hint(self, part: str) -> None:
        self._follower.hint(part)


def _open_notifier(ini: Ini, clock: Clock) -> SelectionNotifier | None:
    """Return the sender of notifications; None: nova.conf wants none, or none from Roost.

    Raises:
        BadSettings: an option is invalid.
    """
    for means in find_foreign(ini):
        log.event("nova_notifications_ignored", problem=f"Roost does not send notifications with {means}")
    options = read_notification_options(ini)
    return None if options is None else SelectionNotifier(options, clock=clock)
