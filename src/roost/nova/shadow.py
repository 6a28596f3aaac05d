"""Shadow mode: compare the choices of nova-scheduler with those that Roost would make.

.. code-block:: text

    copy of a call ─▶ Roost's choice     a dry run at the same moment: no claim, no answer
    allocations    ─▶ Nova's choice      for the same instances, once nova-scheduler has claimed resources for them
                   ─▶ Comparison         one line of the log, and a counter

Nova's choice is read from the allocations of the instances. A remote Placement keeps the allocations. Nova's choice is
then the host in Nova's databases, which appears there once the compute service has accepted the instance.
"""

import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Mapping
from typing import Literal

import msgspec

from roost.engine.columns.state import State
from roost.errors import BadRequest, RoostError, Unavailable
from roost.model.evidence.decision import Decision
from roost.model.names import uuid_bytes
from roost.model.writes import CLASS_BITS
from roost.nova.fleet_sync import PREPARATIONS_MAX, plan_group
from roost.nova.messages.request_spec import SpecRequest
from roost.nova.neutron.network_lookup import FoundNetwork, NetworkLookup, needs_lookup
from roost.nova.neutron.network_segments import add_segments
from roost.nova.request_of_call import as_move, read_call, with_known_zone
from roost.nova.rpc.rpc_call import Call
from roost.nova.rpc.rpc_failure import Failure
from roost.observe import log
from roost.observe.work_metrics import NOVA_SHADOW
from roost.placement.current import Current
from roost.placement.deciding_thread import Serving
from roost.placement.write_plan import Plan
from roost.product import Roost

Verdict = Literal["same", "equal", "other", "only_nova", "only_roost", "unknown"]
# Requests without a result yet; further ones count as unknown.
_WAITING_MAX = 1000
# Seconds until an instance without an allocation counts as refused by Nova.
_NOVA_MAX_S = 30.0
_RECENT_MAX = 1000


class Comparison(msgspec.Struct, frozen=True, kw_only=True):
    """The choices of both schedulers for one request."""

    request_id: str
    instances: tuple[str, ...]
    verdict: Verdict
    nova: tuple[str, ...]  # hosts, one per instance; empty: refused
    roost: tuple[str, ...]
    reason: str = ""  # of Roost's refusal, or the difference of the scores


class _Waiting(msgspec.Struct, kw_only=True):
    """A request for which Nova's result is not known yet."""

    request_id: str
    instances: tuple[str, ...]
    decision: Decision
    before: frozenset[tuple[str, str]]  # instances and hosts with allocations at the time of the request
    until_s: float


class Shadow:
    """The endpoint that receives copies of calls. It has the attributes of an endpoint of the message queue.

    Args:
        roost: the product; only the deciding thread uses it.
        serving: the deciding thread.
        elapsed_s: returns the seconds of a monotonic clock.
        calls_max: choices of Roost in progress; further copies count as unknown.
        networks: looks up requested networks; None: no network is routed.
    """

    topic = "scheduler"
    version = minimum_version = "4.5"

    def __init__(
        self,
        roost: Roost,
        serving: Serving,
        *,
        elapsed_s: Callable[[], float],
        calls_max: int = 64,
        networks: NetworkLookup | None = None,
    ) -> None:
        self._calls_max, self._in_progress = calls_max, 0
        self._roost = roost
        self._serving = serving
        self._elapsed_s = elapsed_s
        self._networks = networks
        self._lock = threading.Lock()
        self._waiting: list[_Waiting] = []
        self._hosts: dict[str, str] = {}  # of instances in Nova's databases, for a remote Placement
        self.counts: Counter[Verdict] = Counter()
        self.recent: deque[Comparison] = deque(maxlen=_RECENT_MAX)

    @property
    def handlers(self) -> Mapping[str, Callable[[Call], None]]:
        """The methods of the topic, by name. Copies of casts are not needed."""
        return {"select_destinations": self.select_destinations}

    def select_destinations(self, call: Call) -> None:
        """Make Roost's choice for a copy of a call, and wait for Nova's."""
        try:
            spec = read_call(call)
        except BadRequest as error:
            self.note_failure(call, str(error))
            return
        if spec.is_rebuild or not spec.request.instance_uuids:
            return
        if not self._begin():
            text = f"{self._calls_max:,} choices are in progress already (limit nova.calls_max)"
            self.note_failure(call, text)
            return
        dry_run = _DryRun(self, self._serving, call, spec=spec)
        if self._networks is not None and needs_lookup(spec, self._roost.settings):
            self._networks.submit(spec.requested_networks, dry_run)
        else:
            dry_run.submit()

    def _begin(self) -> bool:
        """Count a choice in progress; return whether the limit allows it."""
        with self._lock:
            is_allowed = self._in_progress < self._calls_max
            self._in_progress += is_allowed
        return is_allowed

    def end(self) -> None:
        """Note the end of a choice; for any thread."""
        with self._lock:
            self._in_progress -= 1

    def choose(self, current: Current, call: Call, spec: SpecRequest, *, found: Iterable[FoundNetwork]) -> None:
        """Make Roost's choice; a task of the deciding thread."""
        if len(self._waiting) >= _WAITING_MAX:
            self.note_failure(call, f"{_WAITING_MAX:,} requests wait for Nova's choice already")
            return
        wanted = add_segments(spec.request, found, state=current.state, remote=self._roost.remote)
        if isinstance(wanted, Failure):
            self.note_failure(call, wanted.message)
            return
        request = as_move(with_known_zone(wanted, current.state), current.state)
        decision = self._roost.decide(request, dry_run=True)
        # After a failed move, an instance has its allocations on its own host again. This host is not Nova's choice.
        ignored = {(uuid, host) for uuid in spec.request.instance_uuids for host in spec.request.ignore_hosts}
        waiting = _Waiting(
            request_id=call.context.request_id or "",
            instances=spec.request.instance_uuids,
            decision=decision,
            before=frozenset(self._find_hosts(current.state, spec.request.instance_uuids)) | ignored,
            until_s=self._elapsed_s() + _NOVA_MAX_S,
        )
        with self._lock:
            self._waiting.append(waiting)

    def note_hosts(self, hosts: Mapping[str, str]) -> None:
        """Note hosts of instances in Nova's databases, by uuid; used with a remote Placement."""
        with self._lock:
            known = {uuid for each in self._waiting for uuid in each.instances}
            self._hosts = {uuid: host for uuid, host in {**self._hosts, **hosts}.items() if uuid in known}

    def compare(self, current: Current) -> None:
        """Compare the requests that have a result; a task of the deciding thread, about once a second."""
        with self._lock:
            waiting, self._waiting = self._waiting, []
        rest = [each for each in waiting if not self._finish(current.state, each)]
        with self._lock:
            self._waiting[:0] = rest

    def _finish(self, state: State, waiting: _Waiting) -> bool:
        """Compare one request; return False if Nova has not decided yet."""
        found = dict(sorted(set(self._find_hosts(state, waiting.instances)) - waiting.before))
        is_late = self._elapsed_s() >= waiting.until_s
        if len(found) < len(waiting.instances) and not is_late:
            return False
        nova = tuple(found[uuid] for uuid in waiting.instances if uuid in found)
        self._note(_compare(waiting, nova if len(nova) == len(waiting.instances) else ()))
        return True

    def _find_hosts(self, state: State, instances: Iterable[str]) -> Iterable[tuple[str, str]]:
        """Yield each instance with each host of its allocations."""
        providers, hosts = state.providers, state.hosts
        for uuid in instances:
            holder = state.holders.get(uuid_bytes(uuid) or b"")
            if holder is None or not holder.takes:
                if uuid in self._hosts:
                    yield uuid, self._hosts[uuid]
                continue
            roots = {providers.root.each[providers.row_of_id[number >> CLASS_BITS]] for number, _ in holder.takes}
            for root in roots:
                row = hosts.row_of_root.get(root)
                if row is not None:
                    yield uuid, hosts.names[row]

    def _note(self, comparison: Comparison) -> None:
        with self._lock:
            self.counts[comparison.verdict] += 1
            self.recent.append(comparison)
        NOVA_SHADOW.labels(comparison.verdict).inc()
        log.event(
            "nova_shadow",
            verdict=comparison.verdict,
            nova=", ".join(comparison.nova) or "refused",
            roost=", ".join(comparison.roost) or "refused",
            reason=comparison.reason,
            request_id=comparison.request_id,
            instance=comparison.instances[0],
        )

    def note_failure(self, call: Call, problem: str) -> None:
        """Count a request for which Roost made no choice, for an expected reason."""
        self._note(
            Comparison(
                request_id=call.context.request_id or "",
                instances=("",),
                verdict="unknown",
                nova=(),
                roost=(),
                reason=problem,
            )
        )

    def fail(self, call: Call, error: BaseException) -> None:
        """Count a request for which Roost made no choice."""
        if not isinstance(error, RoostError):
            log.fault("nova_shadow", error)
        self.note_failure(call, str(error))


class _DryRun:
    """One copy of a call on its way through the deciding thread."""

    def __init__(self, shadow: Shadow, serving: Serving, call: Call, *, spec: SpecRequest) -> None:
        self._shadow = shadow
        self._serving = serving
        self._call = call
        self._spec = spec
        self._preparations = 0  # commits before the choice
        self._found: tuple[FoundNetwork, ...] = ()

    def take_networks(self, found: tuple[FoundNetwork, ...]) -> None:
        """Go on with the requested networks."""
        self._found = found
        self.submit()

    def refuse(self, failure: Failure) -> None:
        """Count a request whose networks are unknown."""
        self._shadow.end()
        self._shadow.note_failure(self._call, failure.message)

    def submit(self) -> None:
        """Queue the next task."""
        try:
            self._serving.submit(self._choose, self)
        except Unavailable as error:
            self.set_exception(error)

    def set_running_or_notify_cancel(self) -> bool:
        """Return True: no caller waits."""
        return True

    def set_result(self, is_prepared: bool, /) -> None:  # noqa: FBT001  # the protocol of outcomes
        """Go on once the server group is in the columns."""
        if is_prepared:
            self._preparations += 1
            self.submit()
        else:
            self._shadow.end()

    def set_exception(self, exception: BaseException, /) -> None:
        """Count the failure."""
        self._shadow.end()
        self._shadow.fail(self._call, exception)

    def _choose(self, current: Current) -> bool | Plan[bool]:
        group = self._spec.group if self._preparations < PREPARATIONS_MAX else None
        writes = () if group is None else plan_group(current, group)
        if writes:
            return Plan(answer=True, writes=writes)
        self._shadow.choose(current, self._call, self._spec, found=self._found)
        return False


def _compare(waiting: _Waiting, nova: tuple[str, ...]) -> Comparison:
    decision = waiting.decision
    roost = tuple(pick.host for pick in decision.picks)
    verdict: Verdict
    reason = ""
    if sorted(nova) == sorted(roost):
        verdict = "same"
    elif not nova:
        verdict = "only_roost"
    elif not roost:
        verdict, reason = "only_nova", decision.reason
    else:
        verdict, reason = _describe_scores(decision, nova[0], roost[0])
    return Comparison(
        request_id=waiting.request_id,
        instances=waiting.instances,
        verdict=verdict,
        nova=nova,
        roost=roost,
        reason=reason,
    )


def _describe_scores(decision: Decision, nova: str, roost: str) -> tuple[Verdict, str]:
    """Return whether Nova's host has an equal score, and the difference in words."""
    scores = {score.host: score.total for score in decision.best}
    if nova not in scores or roost not in scores:
        return "other", f"{nova} is not among the best hosts of Roost"
    margin = scores[roost] - scores[nova]
    if margin == 0:
        return "equal", "equal scores"
    return "other", f"{nova} scores {margin:.4f} less than {roost}"
