"""Select hosts when a remote Placement keeps the amounts.

.. code-block:: text

    request ─▶ search     the remote Placement returns hosts and their candidates
            ─▶ rank       these hosts, by filters and weighers as usual
            ─▶ place      instance and server group slot, durable here
            ─▶ claim      at the remote Placement; if refused there, give the slot back and try the next host
            ─▶ decision   hosts, alternates, evidence: durable here

Two stores cannot share one commit. The local commit is first, so that server group policies hold in every case. If a
process ends between the two commits, an instance without allocations remains.
"""

import math
from collections.abc import Sequence
from contextlib import suppress

from roost.engine.columns.apply import override_host
from roost.engine.columns.state import State
from roost.engine.pci.pools import UNMAPPED
from roost.errors import BadRequest, Conflict, NotFound, PlacementGone, RoostError, race_conflict
from roost.model.evidence.decision import Decision
from roost.model.fleet import Departure, NamedRequest
from roost.model.names import uuid_text
from roost.model.placement.remote import RemoteHost
from roost.model.request import CandidateQuery, Request
from roost.model.writes import ConsumerRow, Item
from roost.ports import Placement, RemotePlacement
from roost.scheduler.pipeline.choice import Choice
from roost.scheduler.pipeline.consumption import Consumption
from roost.scheduler.pipeline.host_picks import build_claim, build_pick, find_allocation
from roost.scheduler.pipeline.stage import PendingRequest, choose_uuids, to_pending, trail_of
from roost.scheduler.select import Scheduler
from roost.scheduler.shape.host_ranking import Ranking
from roost.scheduler.shape.shape import Shape


class RemoteSearch:
    """Searches a remote Placement, and copies its amounts into the columns.

    Args:
        placement: the columns.
        remote: the remote Placement.
    """

    def __init__(self, placement: Placement, remote: RemotePlacement) -> None:
        self._placement = placement
        self.remote = remote
        self._owed: dict[str, None] = {}  # consumers whose remote allocations, if any, must be deleted

    def owe(self, consumer_uuid: str) -> None:
        """Mark a consumer's remote allocations for deletion by ``settle``."""
        self._owed[consumer_uuid] = None

    def settle(self) -> None:
        """Delete the marked remote allocations.

        Raises:
            PlacementGone: the remote Placement does not reply; the remaining allocations stay marked.
        """
        for uuid in list(self._owed):
            self.remote.release(uuid)
            del self._owed[uuid]

    def __call__(self, query: CandidateQuery) -> tuple[dict[int, dict[str, dict[str, int]]], str]:
        """Return the allocations of a query by host row, and the problem if it cannot be answered."""
        answer = self.remote.candidates(query)
        state = self._placement.state
        allocations = {}
        for uuid, host in answer.hosts.items():
            root = state.providers.row_of_uuid.get(uuid)
            row = None if root is None else state.hosts.row_of_root.get(root)
            if row is not None:
                allocations[row] = host.allocations
                _update_use(state, row, host)
        state.changes.touch_all()  # The next request of the same shape must search again.
        return allocations, answer.problem


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
    override_host(state, row, columns, ratios={})


class RemoteScheduler(Scheduler):
    """Chooses hosts as ``Scheduler`` does, and claims them at a remote Placement.

    Only claims differ, therefore it derives from ``Scheduler``. Acts run one after the other.
    """

    def work(
        self, acts: Sequence[Request | NamedRequest | Departure], *, slice_s: float = math.inf
    ) -> list[Decision | RoostError | None]:
        """Execute requests and departures in order; each sees the results of the earlier ones.

        The results are durable in both stores on return.

        Args:
            acts: requests and departures.
            slice_s: no effect, because the remote process searches.

        Returns:
            One entry per act: the decision, its error, or None for a departure.

        Raises:
            Unavailable: the store failed; the results of this call may not be durable.
        """
        results: list[Decision | RoostError | None] = []
        try:
            for at, act in enumerate(acts):
                try:
                    results.append(self._execute(at, act))
                except (BadRequest, Conflict, NotFound, PlacementGone) as error:
                    self._placement.flush()  # Store the new documents of the failed act.
                    results.append(error)
        except BaseException:
            self._placement.drop()
            raise
        return results

    @property
    def _remote_search(self) -> RemoteSearch:
        assert isinstance(self._host_search, RemoteSearch), "the search is remote"
        return self._host_search

    def _execute(self, at: int, act: Request | NamedRequest | Departure) -> Decision | None:
        self._refresh()
        self._remote_search.settle()
        if not isinstance(act, Departure):
            return self._decide(to_pending(at, act))
        for uuid in act.instance_uuids:
            self._remote_search.remote.release(uuid)
        self._placement.release(act.instance_uuids, act.trail)
        self._placement.flush()
        return None

    def _decide(self, pending: PendingRequest) -> Decision:
        """Choose and claim for one request: all its instances, or none.

        Raises:
            BadRequest: the request is invalid, or a move.
            Conflict: an instance exists, or the request lost too many races.
            PlacementGone: the remote Placement does not reply.
        """
        request, started_s = pending.request, self._clock.elapsed_s()
        if request.move is not None:
            raise BadRequest("this server uses a remote Placement: moving instances is not supported")
        if pending.work:
            raise BadRequest("this server uses a remote Placement: operations are not supported")
        number, uuids = choose_uuids(pending, self._placement.state, self._random)
        seed, choice = self._random.seed(), Choice()
        consumption = self._consumption(self.shape(request)) if request.count > 1 else None
        try:
            shape, ranking = self._place(pending, choice, uuids[0], seed=seed, consumption=consumption)
            for at, instance_uuid in enumerate(uuids[1:], start=1):
                if not choice.is_refused:
                    shape, ranking = self._place(
                        pending, choice, instance_uuid, seed=seed + at, consumption=consumption
                    )
            if not choice.is_refused:
                choice.alternates = self._find_alternates(shape, ranking, choice.rows, seed=seed)
        except RoostError:
            self._give_back(choice)
            raise
        finally:
            if consumption is not None:
                consumption.restore()
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
        pending.decision = decision
        self._placement.stage(Item(writes=(), evidence=(evidence,), trail=trail_of(pending)))
        self._placement.flush()
        return decision

    def _place(
        self,
        pending: PendingRequest,
        choice: Choice,
        instance_uuid: bytes,
        *,
        seed: int,
        consumption: Consumption | None,
    ) -> tuple[Shape, Ranking]:
        """Place one instance on the best host that accepts its claim, or refuse the request.

        Args:
            pending: the request.
            choice: gets one more host, or the refusal.
            instance_uuid: 16 bytes.
            seed: seed of the draw.
            consumption: consumption of the previous instances; None: the request has only one instance.
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
                if self._claim(pending, shape, choice, row=row, instance_uuid=instance_uuid):
                    if consumption is not None:
                        consumption.take([(row, UNMAPPED, choice.picks[-1])])
                    return shape, ranking
                pending.lost.append(names[row])
            self._refresh()
            names = self._placement.state.hosts.names
        raise race_conflict(f"the request lost {len(pending.lost)} races against other processes; try again")

    def _claim(self, pending: PendingRequest, shape: Shape, choice: Choice, *, row: int, instance_uuid: bytes) -> bool:
        """Place an instance locally, then claim its amounts remotely; return False after a lost race."""
        state, request, uuid = self._placement.state, pending.request, uuid_text(instance_uuid)
        allocation = find_allocation(state, shape, row)
        assert allocation is not None, "a host that passes has a candidate"
        pick = build_pick(state, shape, row, instance_uuid=uuid, allocation=allocation)
        consumer = ConsumerRow(self._placement.new_id("consumer"), instance_uuid, request.project_id, request.user_id)
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
        """Remove the placed instances of a request that is not granted."""
        for pick in choice.picks:
            self._remote_search.owe(pick.instance_uuid)
            self._leave(pick.instance_uuid)
        with suppress(PlacementGone):  # The next act tries again.
            self._remote_search.settle()

    def _leave(self, uuid: str) -> None:
        self._placement.release([uuid])
        self._placement.flush()
