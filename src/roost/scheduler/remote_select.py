"""Select hosts when a remote Placement keeps the amounts.

.. code-block:: text

    request ─▶ search     the remote Placement returns hosts and their candidates
            ─▶ rank       these hosts, by filters and weighers as usual
            ─▶ place      instance and server group slot, durable here
            ─▶ claim      at the remote Placement; if refused there, give the slot back and try the next host;
                          a move adds to the previous allocations of its instance (``remote_ledger``)
            ─▶ decision   hosts, alternates, evidence: durable here

Two stores cannot share one commit. The local commit is first, so that server group policies hold in every case. If a
process ends between the two commits, an instance without allocations remains.
"""

import math
from collections.abc import Sequence
from contextlib import suppress

import msgspec

from roost.engine.columns.apply import override_host
from roost.engine.columns.state import State
from roost.engine.pci.pools import UNMAPPED
from roost.errors import BadRequest, Conflict, NotFound, PlacementGone, RoostError, race_conflict
from roost.model.evidence.decision import Decision
from roost.model.fleet import Departure, NamedRequest
from roost.model.names import uuid_bytes, uuid_text
from roost.model.placement.remote import RemoteHost
from roost.model.request import CandidateQuery, Request
from roost.model.writes import Claim, ConsumerRow, Item
from roost.ports import DepartedInstance, Placement, RemotePlacement
from roost.scheduler.pipeline.build_decision import build_decision
from roost.scheduler.pipeline.choice import Choice
from roost.scheduler.pipeline.consumption import Consumption
from roost.scheduler.pipeline.host_picks import build_claim, build_pick, find_allocation
from roost.scheduler.pipeline.move_claims import build_successor, complete_request
from roost.scheduler.pipeline.stage import (
    PendingRequest,
    build_evidence,
    choose_uuids,
    store_documents,
    to_pending,
    trail_of,
)
from roost.scheduler.remote_ledger import RemoteLedger
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
        self._remote = remote
        self.ledger = RemoteLedger(remote)

    def __call__(self, query: CandidateQuery) -> tuple[dict[int, RemoteHost], str]:
        """Return the first candidate of a query on each host, by host row, and the problem if it cannot be answered."""
        answer = self._remote.candidates(query)
        state = self._placement.state
        found = {}
        for uuid, host in answer.hosts.items():
            root = state.providers.row_of_uuid.get(uuid)
            row = None if root is None else state.hosts.row_of_root.get(root)
            if row is not None:
                found[row] = host
                _update_use(state, row, host)
        state.changes.touch_all()  # The next request of the same shape must search again.
        return found, answer.problem


def _update_use(state: State, row: int, host: RemoteHost) -> None:
    used, hosts = host.used, state.hosts
    ram_mb, disk_gb = used.get("MEMORY_MB", 0), used.get("DISK_GB", 0)
    usable_ram_mb, usable_disk_gb = hosts.usable_amounts(row)
    columns = {
        "vcpus_used": used.get("VCPU", 0) + used.get("PCPU", 0),
        "used_ram_mb": ram_mb,
        "used_disk_gb": disk_gb,
        "free_ram_mb": usable_ram_mb - ram_mb,
        "free_disk_mb": 1024 * (usable_disk_gb - disk_gb),
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
    def _ledger(self) -> RemoteLedger:
        assert isinstance(self._host_search, RemoteSearch), "the search is remote"
        return self._host_search.ledger

    def _execute(self, at: int, act: Request | NamedRequest | Departure) -> Decision | None:
        self._refresh()
        self._ledger.settle()
        if not isinstance(act, Departure):
            return self._decide(to_pending(at, act))
        for uuid in act.instance_uuids:
            self._ledger.release(uuid)
        self._placement.release(act.instance_uuids, act.trail)
        self._placement.flush()
        return None

    def _decide(self, pending: PendingRequest) -> Decision:
        """Choose and claim for one request: all its instances, or none.

        Raises:
            BadRequest: the request is invalid, or a move of another kind than Nova's evacuation.
            Conflict: an instance exists, or the request lost too many races.
            PlacementGone: the remote Placement does not reply.
        """
        started_s = self._clock.elapsed_s()
        if pending.work:
            raise BadRequest("this server uses a remote Placement: operations are not supported")
        if pending.request.move is not None:
            pending.request = _complete_move(pending.request, self._placement.state)
        request = pending.request
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
        except Exception:  # Also an error of a rule: claims elsewhere do not end with this commit.
            self._give_back(choice)
            raise
        finally:
            if consumption is not None:
                consumption.restore()
        decision = build_decision(
            pending,
            shape,
            choice,
            number=number,
            position=self._placement.state.position,
            now_s=self._clock.now_s(),
            seed=seed,
            search_s=0.0,
            rank_s=self._clock.elapsed_s() - started_s,
        )
        if choice.is_refused:
            self._give_back(choice)
        pending.decision = decision
        evidence = build_evidence(pending, self._placement, checks_id=shape.checks_id, is_remote=True)
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
                store_documents(self._documents, shape, pending.request, settings_body=self._settings_body)
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
                        pick = choice.picks[-1]
                        consumption.take([(row, pick.mappings or UNMAPPED, pick)])
                    return shape, ranking
                pending.lost.append(names[row])
            self._refresh()
            names = self._placement.state.hosts.names
        raise race_conflict(f"the request lost {len(pending.lost)} races against other processes; try again")

    def _claim(self, pending: PendingRequest, shape: Shape, choice: Choice, *, row: int, instance_uuid: bytes) -> bool:
        """Place an instance locally, then claim its amounts remotely; return False after a lost race."""
        uuid = uuid_text(instance_uuid)
        allocation = find_allocation(self._placement.state, shape, row)
        assert allocation is not None, "a host that passes has a candidate"
        pick = build_pick(self._placement.state, shape, row, instance_uuid=uuid, allocation=allocation)
        departed = self._leave_for_move(pending.request, instance_uuid)
        if not self._take_place(pending.request, shape, row, instance_uuid=instance_uuid, departed=departed):
            return False
        try:
            is_claimed = self._ledger.claim(uuid, allocation.allocations, pending.request)
        except Exception:
            self._return(instance_uuid, departed)
            raise
        if not is_claimed:
            self._return(instance_uuid, departed)
            return False
        choice.departed = departed
        choice.rows.append(row)
        choice.picks.append(pick)
        return True

    def _leave_for_move(self, request: Request, instance_uuid: bytes) -> DepartedInstance | None:
        """Remove a moving instance from its host in the columns; None: it is on no host here."""
        is_here = request.move is not None and instance_uuid in self._placement.state.holders
        return self._placement.leave(instance_uuid) if is_here else None

    def _take_place(
        self, request: Request, shape: Shape, row: int, *, instance_uuid: bytes, departed: DepartedInstance | None
    ) -> bool:
        """Commit the place of an instance on a host; return whether it was free."""
        placement = self._placement
        number = placement.new_id("consumer")
        consumer = (
            ConsumerRow(number, instance_uuid, request.project_id, request.user_id)
            if departed is None
            else build_successor(departed, number)
        )
        claim = build_claim(placement.state, shape, row, consumer=consumer, takes=[])
        return self._commit_place(claim, departed)

    def _commit_place(self, claim: Claim, departed: DepartedInstance | None) -> bool:
        self._placement.occupy(claim)
        writes = (claim,) if departed is None else (departed.release, claim)
        at = self._placement.stage(Item(writes=writes), departed)
        return self._placement.flush()[at] is None

    def _give_back(self, choice: Choice) -> None:
        """Remove the placed instances of a request that is not granted."""
        for pick in choice.picks:
            self._ledger.owe(pick.instance_uuid)
            self._return(uuid_bytes(pick.instance_uuid) or b"", choice.departed)
        with suppress(PlacementGone):  # The next act tries again.
            self._ledger.settle()

    def _return(self, instance_uuid: bytes, departed: DepartedInstance | None) -> None:
        """Remove an instance from its new host; return a moving one to its previous place, unless it is taken."""
        if departed is not None:
            number, left = self._placement.new_id("consumer"), self._placement.leave(instance_uuid)
            held = departed.held
            instances = [msgspec.structs.replace(each, consumer_id=number) for each in held.instances]
            if self._commit_place(Claim([build_successor(left, number)], [], instances, held.places), left):
                return
        self._placement.release([uuid_text(instance_uuid)])
        self._placement.flush()


def _complete_move(request: Request, state: State) -> Request:
    """Add the instance, its server group and its owner to the request of a move, as far as they are known here.

    Raises:
        BadRequest: it is not a move that keeps the previous allocations.
    """
    move = request.move
    assert move is not None
    if not move.holds_both:
        raise BadRequest("this server uses a remote Placement: moving instances is not supported")
    if uuid_bytes(move.instance_uuid) in state.holders:
        return complete_request(request, state)
    return msgspec.structs.replace(request, instance_uuids=(move.instance_uuid,))
