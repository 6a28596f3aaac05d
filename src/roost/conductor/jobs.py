"""Periodic jobs, each run by the process that holds its lease."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple, get_args

from roost.conductor.intake.accept_changes import offload
from roost.conductor.operation.liveness import give_up_agent
from roost.conductor.operation.row_changes import derive_uuid, make_due, next_version, replace_row
from roost.errors import Conflict, NotFound, StoreBroken
from roost.model.names import uuid_text
from roost.model.work.orders import Action
from roost.model.work.work_rows import AgentRow, LeaseRow, OperationRow, Put, StatusRow
from roost.observe import log, work_metrics
from roost.placement.current import Current
from roost.placement.deciding_thread import Serving
from roost.placement.job import Task
from roost.placement.write_plan import Plan
from roost.ports import WorkReader

# Seconds, three turns of the job ``watch``. After a longer pause, the process may have missed heartbeats.
_BLIND_S = 15.0
# Statuses per query.
_PAGE = 200
# Upper bound on the orders to absent agents read per turn.
_ORDERS_MAX = 1000
# If an agent is given up, the operations with orders of these actions become due. Orders to destroy wait for the
# return of the agent.
_WATCHED_ACTIONS = sorted({*get_args(Action)} - {"destroy"})


class Job(NamedTuple):
    """A periodic job."""

    every_s: float
    run: "Callable[[Jobs], None]"
    is_enabled: "Callable[[Jobs], bool]" = lambda _jobs: True  # from the current settings


class Jobs:
    """Runs periodic jobs, each while no other process holds its lease.

    Args:
        name: unique among the processes of the database.
        serving: the owner of the columns and commits.
        reader: of operations and statuses; no other thread uses it during a turn.
        down_time_s: seconds of silence until an agent is given up.
        offload_s: seconds until a shelved instance leaves its host; 0 or less: the job ``offload`` does not run.
        serves_agents: whether agents send heartbeats to this process; otherwise it cannot detect silent ones.
    """

    def __init__(
        self,
        name: str,
        *,
        serving: Serving,
        reader: WorkReader,
        down_time_s: Callable[[], float],
        offload_s: Callable[[], float],
        serves_agents: bool = True,
    ) -> None:
        self.serving = serving
        self.reader = reader
        self.down_time_s = down_time_s
        self.offload_s = offload_s
        self.serves_agents = serves_agents
        # Perhaps no server could receive heartbeats until now, so silence counts from now on.
        self.silent_since_s = self.watched_at_s = reader.now_s()
        self._name = name
        self._next_s: dict[str, float] = {}

    def turn(self) -> None:
        """Run the due jobs.

        Raises:
            Unavailable: the database cannot be used.
        """
        for name, job in JOBS.items():
            now_s = self.reader.now_s()
            if now_s < self._next_s.get(name, 0.0) or not job.is_enabled(self):
                continue
            self._next_s[name] = now_s + job.every_s
            # The holder renews its lease. If it dies, another process takes over after one missed turn.
            if self._take_lease(name, now_s=now_s, until_s=now_s + 2 * job.every_s):
                job.run(self)

    def _take_lease(self, name: str, *, now_s: float, until_s: float) -> bool:
        """Take or renew the lease of a job; return whether this process holds it."""
        lease = self.reader.lease(name)
        if lease is not None and lease.owner != self._name and lease.until_s > now_s:
            return False
        new = LeaseRow(name=name, owner=self._name, until_s=until_s)
        put = Put(new) if lease is None else replace_row(next_version(lease, owner=self._name, until_s=until_s))
        task: Task[bool] = lambda _current: Plan(answer=True, work=(put,))  # noqa: E731  # the annotation gives it a type
        try:
            return self.serving.run(task)
        except Conflict:
            return False


def watch(jobs: Jobs) -> None:
    """Give up silent agents: their hosts are marked down, and operations waiting for them become due.

    After a long pause between two turns, such as an outage of the database, silence counts from now on, because no
    heartbeat was stored.
    """
    now_s, before_s = jobs.reader.now_s(), jobs.watched_at_s
    jobs.watched_at_s = now_s
    if now_s - before_s > _BLIND_S:
        jobs.silent_since_s = now_s
    for agent in jobs.reader.agents():
        if _is_silent(jobs, agent):
            try:
                jobs.serving.run(_give_up(jobs, agent.host))
            except (Conflict, StoreBroken) as error:  # The next turn tries it again.
                log.fault(f"agent {agent.host}", error)
    _wake_late_operations(jobs)


def _wake_late_operations(jobs: Jobs) -> None:
    """Make operations due if their order was sent just as its agent was given up."""
    gone = [agent.host for agent in jobs.reader.agents() if agent.state == "gone"]
    orders = jobs.reader.open_orders(gone, limit=_ORDERS_MAX, actions=_WATCHED_ACTIONS) if gone else []
    for row in jobs.reader.operations_by_id(sorted({order.operation_id for order in orders})):
        now_s = jobs.reader.now_s()
        if not row.outcome and row.due_at_s > now_s:
            with suppress(Conflict):  # The operation has continued in the meantime.
                jobs.serving.run(_commit(Plan(answer=None, work=(replace_row(make_due(row, now_s=now_s)),))))


def _commit(plan: Plan[None]) -> Task[None]:
    return lambda _current: plan


def _give_up(jobs: Jobs, host: str) -> Task[None]:
    def task(current: Current) -> Plan[None] | None:
        agent = jobs.reader.agent(host)
        if agent is None or not _is_silent(jobs, agent):
            return None
        plan = give_up_agent(current, jobs.reader, agent, reported_at_s=agent.heard_at_s, now_s=jobs.reader.now_s())
        return replace(plan, on_commit=work_metrics.AGENTS_LOST.inc)

    return task


def _is_silent(jobs: Jobs, agent: AgentRow) -> bool:
    last_heartbeat_s = max(agent.heard_at_s, jobs.silent_since_s)
    return agent.state != "gone" and jobs.reader.now_s() - last_heartbeat_s > jobs.down_time_s()


def offload_shelved(jobs: Jobs) -> None:
    """Offload the instances shelved for long enough."""
    after_s, last = jobs.offload_s(), 0
    while page := jobs.reader.statuses(after_id=last, limit=_PAGE, status="SHELVED"):
        last = page[-1].id
        now_s = jobs.reader.now_s()
        for status in page:
            if status.host and not status.operation_id and now_s - status.changed_at_s >= after_s:
                _offload(jobs, status)


def _offload(jobs: Jobs, status: StatusRow) -> None:
    uuid = derive_uuid("offload", status.uuid, str(status.version).encode())
    name = uuid_text(status.uuid)

    def task(current: Current) -> Plan[OperationRow] | OperationRow:
        return offload(current, jobs.reader, name, operation_uuid=uuid, now_s=jobs.reader.now_s())

    try:
        jobs.serving.run(task)
    except (Conflict, NotFound):
        return  # Another operation has locked the instance, or it was deleted.
    except StoreBroken as error:
        log.fault(f"instance {name}", error)


JOBS: Mapping[str, Job] = {
    "watch": Job(every_s=5.0, run=watch, is_enabled=lambda jobs: jobs.serves_agents),
    "offload": Job(every_s=10.0, run=offload_shelved, is_enabled=lambda jobs: jobs.offload_s() > 0),
}
