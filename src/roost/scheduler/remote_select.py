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
from roost.scheduler.pipeline.host_picks import claim_on, pick_on, takes_on
from roost.scheduler.pipeline.shape import Shape
from roost.scheduler.pipeline.shape_result import Ranked
from roost.scheduler.pipeline.stage import Wish, uuids_of, wish_of
from roost.scheduler.select import Scheduler


class Asking:
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
                _tell(state, row, host)
        state.changes.touch_all()  # The next request of the same shape asks anew.
        return held, answer.problem


def _tell(state: State, row: int, host: RemoteHost) -> None:
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
                    results.append(self._done(at, act))
                except (BadRequest, Conflict, NotFound, PlacementGone) as error:
                    self._placement.flush()  # Documents may be staged, which harm nobody.
                    results.append(error)
        except BaseException:
            self._placement.drop()
            raise
        return results

    @property
    def _asking(self) -> Asking:
        assert isinstance(self._ask, Asking), "a remote Placement is asked"
        return self._ask

    def _done(self, at: int, act: Request | NamedRequest | Departure) -> Decision | None:
        self._refresh()
        self._asking.settle()
        if not isinstance(act, Departure):
            return self._decide(wish_of(at, act))
        for uuid in act.instance_uuids:
            self._asking.remote.release(uuid)
        self._placement.release(act.instance_uuids)
        self._placement.flush()
        return None

    def _decide(self, wish: Wish) -> Decision:
        """Choose and claim for one request: all its instances, or none.

        Raises:
            BadRequest: it cannot be meant, or it is a move.
            Conflict: an instance exists, or others were faster, again and again.
            PlacementGone: the remote Placement does not answer.
        """
        request, started_s = wish.request, self._clock.elapsed_s()
        if request.move is not None:
            raise BadRequest("an instance cannot be moved where a remote Placement keeps the amounts")
        if wish.work:
            raise BadRequest("no operation can be decided where a remote Placement keeps the amounts")
        number, uuids = uuids_of(wish, self._placement.state, self._random)
        seed, choice = self._random.seed(), Choice()
        consumption = self._consumption(self.shape(request)) if request.count > 1 else None
        try:
            shape, ranked = self._place(wish, choice, uuids[0], seed=seed, consumption=consumption)
            for at, body in enumerate(uuids[1:], start=1):
                if not choice.is_refused:
                    shape, ranked = self._place(wish, choice, body, seed=seed + at, consumption=consumption)
            if not choice.is_refused:
                choice.alternates = self._alternates(shape, ranked, choice.rows, seed=seed)
        except RoostError:
            self._give_back(choice)
            raise
        finally:
            if consumption is not None:
                consumption.give_back()
        decision = self._decision(
            wish,
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
        self, wish: Wish, choice: Choice, body: bytes, *, seed: int, consumption: Consumption | None
    ) -> tuple[Shape, Ranked]:
        """Let one instance have the best host that it can get, or refuse the request.

        Args:
            choice: becomes richer by a host, or refused.
            body: uuid of the instance.
            consumption: of the instances before it; None: it is the only one.
        """
        names = self._placement.state.hosts.names
        for _ in range(self._settings.claim_rounds):
            shape = self.shape(wish.request)
            if consumption is not None:
                consumption.follow(shape)
            if not shape.flavor_id:
                self._store_documents(shape, wish.request)
            ranked = shape.rank(self._depth)
            if not choice.rows:
                choice.see(shape, ranked)
            if not ranked.rows:
                choice.refuse(shape, ranked)
                return shape, ranked
            drawn = self._drawing.host(shape, ranked, seed=seed)
            for row in dict.fromkeys([drawn, *ranked.rows]):
                if self._claim(wish, shape, choice, row=row, body=body):
                    if consumption is not None:
                        consumption.take([(row, UNMAPPED, choice.picks[-1])])
                    return shape, ranked
                wish.lost.append(names[row])
            self._refresh()
            names = self._placement.state.hosts.names
        raise Conflict(f"the request lost {len(wish.lost)} races against other processes; try again")

    def _claim(self, wish: Wish, shape: Shape, choice: Choice, *, row: int, body: bytes) -> bool:
        """Let an instance take its place on a host here, then its amounts there; neither, if it loses a race."""
        state, request, uuid = self._placement.state, wish.request, uuid_text(body)
        held = takes_on(state, shape, row)
        assert held is not None, "a host that passes has a candidate"
        pick = pick_on(state, shape, row, instance_uuid=uuid, held=held)
        consumer = ConsumerRow(self._placement.new_id("consumer"), body, request.project_id, request.user_id)
        claim = claim_on(state, shape, row, consumer=consumer, takes=[])
        self._placement.occupy(claim)
        at = self._placement.stage(Item(writes=(claim,)))
        if self._placement.flush()[at] is not None:
            return False
        try:
            is_claimed = self._asking.remote.claim(
                uuid, held.allocations, project_id=request.project_id, user_id=request.user_id
            )
        except PlacementGone:
            self._asking.owe(uuid)
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
            self._asking.owe(pick.instance_uuid)
            self._leave(pick.instance_uuid)
        with suppress(PlacementGone):  # It is told when it is back.
            self._asking.settle()

    def _leave(self, uuid: str) -> None:
        self._placement.release([uuid])
        self._placement.flush()
