"""Select hosts where a Placement of another server keeps the amounts.

.. code-block:: text

    request ─▶ ask        the remote Placement: which hosts could hold it, and how
            ─▶ rank       these hosts, by the filters and weighers, as everywhere
            ─▶ place      instance and place in its server group, durable here
            ─▶ claim      at the remote Placement; refused there: the place is given back, and the next host's turn
            ─▶ decision   hosts, alternates, evidence: durable here

Two commits in two places cannot be one. What is placed here comes first, so that rules of server groups hold whatever
happens; what a process leaves behind that ends between the two is an instance without allocations.
"""

import math
from collections.abc import Sequence
from contextlib import suppress

from roost.engine.columns.apply import tell
from roost.engine.columns.state import State
from roost.engine.pci.pools import UNMAPPED
from roost.errors import BadRequest, Conflict, NotFound, PlacementGone, RoostError
from roost.model.evidence.decision import Decision
from roost.model.fleet import Departure, NamedRequest
from roost.model.names import uuid_text
from roost.model.remote import RemoteHost
from roost.model.request import CandidateQuery, Request
from roost.model.writes import ConsumerRow, Item
from roost.ports import Placement, RemotePlacement
from roost.scheduler.pipeline.choice import Choice
from roost.scheduler.pipeline.consumption import Consumption
from roost.scheduler.pipeline.host_picks import build_claim, build_pick, find_allocation
from roost.scheduler.pipeline.shape import Shape
from roost.scheduler.pipeline.shape_result import Ranking
from roost.scheduler.pipeline.stage import PendingRequest, choose_uuids, to_pending
from roost.scheduler.select import Scheduler


class RemoteSearch:
    """Asks a remote Placement, and lets the columns have what it tells.

    Args:
        placement: the columns.
        remote: who is asked.
    """

    def __init__(self, placement: Placement, remote: RemotePlacement) -> None:
        self._placement = placement
        self.remote = remote
        self._owed: dict[str, None] = {}  # consumers that may hold something there, and are to hold nothing

    def owe(self, consumer_uuid: str) -> None:
        """Note that a consumer is to give back what it holds there, if it holds anything."""
        self._owed[consumer_uuid] = None

    def settle(self) -> None:
        """Give back what is owed.

        Raises:
            PlacementGone: the remote Placement does not answer; the rest stays owed.
        """
        for uuid in list(self._owed):
            self.remote.release(uuid)
            del self._owed[uuid]

    def __call__(self, query: CandidateQuery) -> tuple[dict[int, dict[str, dict[str, int]]], str]:
        """Return which hosts can hold a query, and what it would take there; or why it cannot be answered."""
        answer = self.remote.candidates(query)
        state = self._placement.state
        held = {}
        for uuid, host in answer.hosts.items():
            root = state.providers.row_of_uuid.get(uuid)
            row = None if root is None else state.hosts.row_of_root.get(root)
            if row is not None:
                held[row] = host.allocations
                _update_use(state, row, host)
        state.changes.touch_all()  # The next request of the same shape asks anew.
        return held, answer.problem


def _update_use(state: State, row: int, host: RemoteHost) -> None:
    used, hosts = host.used, state.hosts
    ram_mb, disk_gb = used.get("MEMORY_MB", 0), used.get("DISK_GB", 0)
    columns = {
        "vcpus_used": used.get("VCPU", 0) + used.get("PCPU", 0),
        "used_ram_mb": ram_mb,
        "used_disk_gb": disk_gb,
        "free_ram_mb": hosts.columns["total_usable_ram_mb"].each[row] - ram_mb,
        "free_disk_mb": 1024 * (hosts.columns["total_usable_disk_gb"].each[row] - disk_gb),
    }
    tell(state, row, columns, ratios={})


class RemoteScheduler(Scheduler):
    """Chooses hosts as any scheduler, and claims them at the remote Placement that its ``ask`` asks.

    Only what a claim is differs, so it is a scheduler and has none. Acts are done one after the other.
    """

    def work(
        self, acts: Sequence[Request | NamedRequest | Departure], *, slice_s: float = math.inf
    ) -> list[Decision | RoostError | None]:
        """Do acts in order, each seeing those before it; durable on return, here and there.

        Args:
            slice_s: of no effect: the other process searches.

        Returns:
            One entry an act: the decision, the error that kept it from being made, or None for a departure.

        Raises:
            Unavailable: the store failed; what was not returned by an earlier call may not be durable.
        """
        results: list[Decision | RoostError | None] = []
        try:
            for at, act in enumerate(acts):
                try:
                    results.append(self._do(at, act))
                except (BadRequest, Conflict, NotFound, PlacementGone) as error:
                    self._placement.flush()  # Documents may be staged, which harm nobody.
                    results.append(error)
        except BaseException:
            self._placement.drop()
            raise
        return results

    @property
    def _remote_search(self) -> RemoteSearch:
        assert isinstance(self._ask, RemoteSearch), "a remote Placement is asked"
        return self._ask

    def _do(self, at: int, act: Request | NamedRequest | Departure) -> Decision | None:
        self._refresh()
        self._remote_search.settle()
        if not isinstance(act, Departure):
            return self._decide(to_pending(at, act))
        for uuid in act.instance_uuids:
            self._remote_search.remote.release(uuid)
        self._placement.release(act.instance_uuids)
        self._placement.flush()
        return None

    def _decide(self, pending: PendingRequest) -> Decision:
        """Choose and claim for one request: all its instances, or none.

        Raises:
            BadRequest: it cannot be meant, or it is a move.
            Conflict: an instance exists, or others were faster, again and again.
            PlacementGone: the remote Placement does not answer.
        """
        request, started_s = pending.request, self._clock.elapsed_s()
        if request.move is not None:
            raise BadRequest("an instance cannot be moved where a remote Placement keeps the amounts")
        if pending.work:
            raise BadRequest("no operation can be decided where a remote Placement keeps the amounts")
        number, uuids = choose_uuids(pending, self._placement.state, self._random)
        seed, choice = self._random.seed(), Choice()
        consumption = self._consumption(self.shape(request)) if request.count > 1 else None
        try:
            shape, ranking = self._place(pending, choice, uuids[0], seed=seed, consumption=consumption)
            for at, body in enumerate(uuids[1:], start=1):
                if not choice.is_refused:
                    shape, ranking = self._place(pending, choice, body, seed=seed + at, consumption=consumption)
            if not choice.is_refused:
                choice.alternates = self._find_alternates(shape, ranking, choice.rows, seed=seed)
        except RoostError:
            self._give_back(choice)
            raise
        finally:
            if consumption is not None:
                consumption.give_back()
        decision = self._decision(
            pending,
            shape,
            choice,
            uuid=uuid_text(number),
            now_s=self._clock.now_s(),
            seed=seed,
            search_s=0.0,
            rank_s=self._clock.elapsed_s() - started_s,
        )
        if choice.is_refused:
            self._give_back(choice)
        evidence = self._evidence_row(decision, number, request.project_id, checks_id=shape.checks_id)
        self._placement.stage(Item(writes=(), evidence=(evidence,)))
        self._placement.flush()
        return decision

    def _place(
        self, pending: PendingRequest, choice: Choice, body: bytes, *, seed: int, consumption: Consumption | None
    ) -> tuple[Shape, Ranking]:
        """Let one instance have the best host that it can get, or refuse the request.

        Args:
            choice: becomes richer by a host, or refused.
            body: uuid of the instance.
            consumption: of the instances before it; None: it is the only one.
        """
        names = self._placement.state.hosts.names
        for _ in range(self._settings.claim_rounds):
            shape = self.shape(pending.request)
            if consumption is not None:
                consumption.use_shape(shape)
            if not shape.flavor_id:
                self._store_documents(shape, pending.request)
            ranking = shape.rank(self._depth)
            if not choice.rows:
                choice.record_ranking(shape, ranking)
            if not ranking.rows:
                choice.record_refusal(shape, ranking)
                return shape, ranking
            drawn = self._draw.draw_host(shape, ranking, seed=seed)
            for row in dict.fromkeys([drawn, *ranking.rows]):
                if self._claim(pending, shape, choice, row=row, body=body):
                    if consumption is not None:
                        consumption.take([(row, UNMAPPED, choice.picks[-1])])
                    return shape, ranking
                pending.lost.append(names[row])
            self._refresh()
            names = self._placement.state.hosts.names
        raise Conflict(f"the request lost {len(pending.lost)} races against other processes; try again")

    def _claim(self, pending: PendingRequest, shape: Shape, choice: Choice, *, row: int, body: bytes) -> bool:
        """Let an instance take its place on a host here, then its amounts there; neither, if it loses a race."""
        state, request, uuid = self._placement.state, pending.request, uuid_text(body)
        allocation = find_allocation(state, shape, row)
        assert allocation is not None, "a host that passes has a candidate"
        pick = build_pick(state, shape, row, instance_uuid=uuid, held=allocation)
        consumer = ConsumerRow(self._placement.new_id("consumer"), body, request.project_id, request.user_id)
        claim = build_claim(state, shape, row, consumer=consumer, takes=[])
        self._placement.occupy(claim)
        at = self._placement.stage(Item(writes=(claim,)))
        if self._placement.flush()[at] is not None:
            return False
        try:
            is_claimed = self._remote_search.remote.claim(
                uuid, allocation.allocations, project_id=request.project_id, user_id=request.user_id
            )
        except PlacementGone:
            self._remote_search.owe(uuid)
            self._leave(uuid)
            raise
        if not is_claimed:
            self._leave(uuid)
            return False
        choice.rows.append(row)
        choice.picks.append(pick)
        return True

    def _give_back(self, choice: Choice) -> None:
        """Let the instances end that were placed for a request which is not granted."""
        for pick in choice.picks:
            self._remote_search.owe(pick.instance_uuid)
            self._leave(pick.instance_uuid)
        with suppress(PlacementGone):  # It is told when it is back.
            self._remote_search.settle()

    def _leave(self, uuid: str) -> None:
        self._placement.release([uuid])
        self._placement.flush()
