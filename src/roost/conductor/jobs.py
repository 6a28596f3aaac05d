"""What is done again and again, by one process at a time: who has the lease of a job does it."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import NamedTuple, get_args

from roost.conductor.intake.accept_changes import offload
from roost.conductor.operation.liveness import give_up_agent
from roost.conductor.operation.row_changes import derive_uuid, make_due, next_version, replace_row
from roost.errors import Conflict, NotFound, StoreBroken
from roost.model.names import uuid_text
from roost.model.work.orders import Action
from roost.model.work.work_rows import AgentRow, LeaseRow, OperationRow, Put, StatusRow
from roost.observe import log
from roost.placement.current import Current
from roost.placement.deciding_thread import Serving, Task
from roost.placement.write_plan import Plan
from roost.ports import WorkReader

# Who watched longer ago than this knows nothing of who was heard meanwhile; three turns.
_BLIND_S = 15.0
# So many statuses are read at once.
_PAGE = 200
# So many orders to agents that are gone are looked at in a turn.
_TOLD_MAX = 1000
# What may be waited for that nobody does; what is to be destroyed waits for the return of its host, however long.
_AWAITED = sorted({*get_args(Action)} - {"destroy"})


class Job(NamedTuple):
    """One job."""

    every_s: float
    run: "Callable[[Jobs], None]"
    is_wanted: "Callable[[Jobs], bool]" = lambda _jobs: True  # by the settings in force


class Jobs:
    """Does periodic jobs, each while nobody else has its lease.

    Args:
        name: tells it from all others that work on the database.
        serving: the thread that owns the columns, and commits.
        reader: what is known of work; nobody else uses it while a turn is on.
        down_time_s: an agent that was not heard for longer is given up.
        offload_s: an instance that is shelved for longer leaves its host; 0 or below: that is no job.
        is_hearing: whether agents ask this process; who does not hear them cannot tell that one is silent.
    """

    def __init__(
        self,
        name: str,
        *,
        serving: Serving,
        reader: WorkReader,
        down_time_s: Callable[[], float],
        offload_s: Callable[[], float],
        is_hearing: bool = True,
    ) -> None:
        self.serving = serving
        self.reader = reader
        self.down_time_s = down_time_s
        self.offload_s = offload_s
        self.is_hearing = is_hearing
        # Nobody could be heard while no server was there, so silence counts from now on.
        self.silent_since_s = self.watched_at_s = reader.now_s()
        self._name = name
        self._next_s: dict[str, float] = {}

    def turn(self) -> None:
        """Do what is due.

        Raises:
            Unavailable: the database cannot be used.
        """
        for name, job in JOBS.items():
            now_s = self.reader.now_s()
            if now_s < self._next_s.get(name, 0.0) or not job.is_wanted(self):
                continue
            self._next_s[name] = now_s + job.every_s
            # Who does it keeps the lease; where it dies, another one waits for a turn to be left out.
            if self._has(name, now_s=now_s, until_s=now_s + 2 * job.every_s):
                job.run(self)

    def _has(self, name: str, *, now_s: float, until_s: float) -> bool:
        """Take the lease of a job, or keep it; say whether it is ours."""
        lease = self.reader.lease(name)
        if lease is not None and lease.owner != self._name and lease.until_s > now_s:
            return False
        new = LeaseRow(name=name, owner=self._name, until_s=until_s)
        put = Put(new) if lease is None else replace_row(next_version(lease, owner=self._name, until_s=until_s))
        taken: Task[bool] = lambda _current: Plan(answer=True, work=(put,))  # noqa: E731  # so that it has a type
        try:
            return self.serving.run(taken)
        except Conflict:
            return False


def watch(jobs: Jobs) -> None:
    """Give up agents that were not heard for too long: their hosts are down, and whoever waits for them looks again.

    Where it did not look for long, as while the database was away, silence counts anew: nobody could be heard either.
    """
    now_s, before_s = jobs.reader.now_s(), jobs.watched_at_s
    jobs.watched_at_s = now_s
    if now_s - before_s > _BLIND_S:
        jobs.silent_since_s = now_s
    for agent in jobs.reader.agents():
        if _is_silent(jobs, agent):
            try:
                jobs.serving.run(_watched(jobs, agent.host))
            except (Conflict, StoreBroken) as error:  # The other ones are not kept waiting; this one has its next turn.
                log.fault(f"agent {agent.host}", error)
    _tell_late(jobs)


def _tell_late(jobs: Jobs) -> None:
    """Let operations look again that ordered something of an agent which was given up at the same moment."""
    gone = [agent.host for agent in jobs.reader.agents() if agent.state == "gone"]
    orders = jobs.reader.open_orders(gone, most=_TOLD_MAX, actions=_AWAITED) if gone else []
    for row in jobs.reader.operations_by(sorted({order.operation_id for order in orders})):
        now_s = jobs.reader.now_s()
        if not row.outcome and row.due_at_s > now_s:
            with suppress(Conflict):  # It went on by itself.
                jobs.serving.run(_planned(Plan(answer=None, work=(replace_row(make_due(row, now_s=now_s)),))))


def _planned(plan: Plan[None]) -> Task[None]:
    return lambda _current: plan


def _watched(jobs: Jobs, host: str) -> Task[None]:
    def task(current: Current) -> Plan[None] | None:
        agent = jobs.reader.agent(host)
        if agent is None or not _is_silent(jobs, agent):
            return None
        return give_up_agent(current, jobs.reader, agent, reported_at_s=agent.heard_at_s, now_s=jobs.reader.now_s())

    return task


def _is_silent(jobs: Jobs, agent: AgentRow) -> bool:
    heard_s = max(agent.heard_at_s, jobs.silent_since_s)
    return agent.state != "gone" and jobs.reader.now_s() - heard_s > jobs.down_time_s()


def offload_shelved(jobs: Jobs) -> None:
    """Let instances leave their hosts that are shelved for long enough."""
    after_s, last = jobs.offload_s(), 0
    while page := jobs.reader.statuses(after_id=last, most=_PAGE, status="SHELVED"):
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
        return  # Somebody does something else with it, or it is no more.
    except StoreBroken as error:
        log.fault(f"instance {name}", error)


JOBS: Mapping[str, Job] = {
    "watch": Job(every_s=5.0, run=watch, is_wanted=lambda jobs: jobs.is_hearing),
    "offload": Job(every_s=10.0, run=offload_shelved, is_wanted=lambda jobs: jobs.offload_s() > 0),
}
