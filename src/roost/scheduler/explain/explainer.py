"""Explains a decision in full: each rule's rejections, the nearest hosts, and the changes that would help."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice

import msgspec
import numpy as np

from roost.engine.columns.empty_fleet import empty_fleet, empty_group
from roost.engine.columns.state import State
from roost.engine.columns.types import Mask
from roost.engine.feasibility.feasibility import AmountCheck, GroupCheck
from roost.errors import BadRequest, NotFound
from roost.model.evidence.explain import Change, Explanation, Never
from roost.model.request import Request
from roost.ports import Placement
from roost.scheduler.explain import relaxations
from roost.scheduler.explain.ranking_margins import explain_ranking
from roost.scheduler.explain.relaxations import Relaxation, RequestedAmount
from roost.scheduler.explain.verdict_matrix import Matrix, nearest_hosts
from roost.scheduler.framework.spec import Spec, Subject
from roost.scheduler.select import Scheduler
from roost.scheduler.shape.shape import Shape

NEAREST = 5  # nearest hosts in an explanation
RANKED = 10
# Relaxations, and the subjects of the checks that each may affect. A filter may read everything.
_RELAXATIONS: tuple[tuple[Callable[[Request, State], Iterable[Relaxation]], frozenset[Subject]], ...] = (
    (relaxations.without_traits, frozenset({"trait", "group", "search", "rule"})),
    (relaxations.other_zones, frozenset({"aggregate", "search", "rule"})),
    (relaxations.without_aggregates, frozenset({"aggregate", "search", "rule"})),
    (relaxations.without_server_group, frozenset({"rule"})),
    # Within a requested tree, amounts of sharing providers do not count.
    (relaxations.without_named_hosts, frozenset({"hosts", "tree", "amount", "search", "rule"})),
    (relaxations.other_images, frozenset({"trait", "class", "rule"})),
    (relaxations.without_capabilities, frozenset({"trait", "class", "rule"})),
)
# Upper bound on attempts per kind of relaxation, for requests with hundreds of groups or traits.
_RELAXATIONS_MAX = 64
# Upper bound on attempted amounts, if each amount must be tried.
_ATTEMPTS_MAX = 64


class Explainer:
    """Explains requests on the current columns, without changes to them.

    Args:
        placement: the columns.
        scheduler: compiles, ranks and places the requests to explain.
    """

    def __init__(self, *, placement: Placement, scheduler: Scheduler) -> None:
        self._placement = placement
        self._scheduler = scheduler
        self._seed = 0
        self._empty: tuple[State, int, State] | None = None  # columns, their epoch, and a copy without consumers

    @property
    def _state(self) -> State:
        return self._placement.state

    def _empty_state(self) -> State:
        """Return the columns without consumers, cached until a static change."""
        state = self._state
        if self._empty is None or self._empty[0] is not state or self._empty[1] != state.changes.epoch:
            self._empty = (state, state.changes.epoch, empty_fleet(state))
        return self._empty[2]

    def explain(
        self, request: Request, *, changes: list[Change] | None = None, never: Never | None = None
    ) -> Explanation:
        """Explain the present result of a request for one instance.

        Args:
            request: for one instance.
            changes, never: these parts of the explanation, if already computed for several instances.

        Raises:
            BadRequest: the request is invalid.
            NotFound: a named resource does not exist.
        """
        shape = self._scheduler.shape_to_explain(request)
        matrix = Matrix(shape, self._state)
        stages = matrix.stages()
        left = stages[-1].after if stages else int(np.count_nonzero(matrix.alive))
        hosts = stages[0].before if stages else left
        rules = matrix.rules(stages)
        if left:
            ranking, preferences, tips = explain_ranking(matrix, RANKED)
            return Explanation(hosts=hosts, left=left, rules=rules, ranking=ranking, preferences=preferences, tips=tips)
        return Explanation(
            hosts=hosts,
            left=0,
            reason=shape.evidence.reason(stages),
            rules=rules,
            nearest=nearest_hosts(matrix, NEAREST),
            changes=self._changes(request, matrix) if changes is None else changes,
            never=self._never(shape) if never is None else never,
        )

    def changes(self, request: Request, *, seed: int) -> list[Change]:
        """Return the smallest change of each kind with which all instances fit, the change with the most hosts first.

        Args:
            request: for several instances.
            seed: seed of random draws among the best hosts.
        """
        self._seed = seed
        single = msgspec.structs.replace(request, count=1, instance_uuids=())
        return self._changes(request, Matrix(self._scheduler.compile_shape(single), self._state))

    def _never(self, shape: Shape) -> Never:
        """Explain the request on the fleet without consumers."""
        spec, group = shape.spec, shape.spec.group
        empty_spec = Spec(
            spec.request,
            now_s=spec.now_s,
            group=None if group is None else empty_group(group),
            moved_uuid=spec.moved_uuid,
            pci_requests=spec.pci_requests,
            queries=spec.queries,
        )
        stages = Matrix(shape, self._empty_state(), empty_spec).stages()
        if stages[-1].after:
            return Never(could_fit=True)
        return Never(could_fit=False, reason=shape.evidence.reason(stages))

    def _changes(self, request: Request, matrix: Matrix) -> list[Change]:
        """Return the smallest change of each kind with which the request fits, the change with the most hosts first."""
        changes: list[Change] = []
        query = matrix.shape.query
        if query is None:
            return changes
        for requested in relaxations.query_amounts(query)[:_RELAXATIONS_MAX]:
            change = self._reduce_amount(request, requested, matrix)
            if change is not None:
                changes.append(change)
        if request.count > 1 or matrix.could_open(("amount", "group", "class", "search", "rule")):
            limits = {} if request.count > 1 else self._group_limits(matrix)
            changes.extend(islice(self._find_fitting(relaxations.fewer_groups(request, query, limits)), 1))
        for relax, subjects in _RELAXATIONS:
            # Another instance of the request may need a change that this one does not need.
            if request.count > 1 or matrix.could_open(subjects):
                changes.extend(self._find_fitting(relax(request, self._state)))
        return sorted(changes, key=lambda change: -change.hosts)

    def _group_limits(self, matrix: Matrix) -> dict[tuple[str, ...], int]:
        """Return the largest number of equal groups on one host, by their suffixes.

        Only hosts without other shortfalls count.
        """
        return {
            check.suffixes: int(check.count_by_host(self._state)[matrix.only(at)].max(initial=0))
            for at, check in enumerate(matrix.shape.fit.checks)
            if isinstance(check, GroupCheck) and matrix.shape.fit.is_exact
        }

    def _find_fitting(self, edits: Iterable[Relaxation]) -> Iterator[Change]:
        for edit in islice(edits, _RELAXATIONS_MAX):
            hosts = self._count_hosts(edit.request)
            if hosts:
                yield Change(kind=edit.kind, text=edit.text, hosts=hosts, request=edit.request)

    def _count_hosts(self, request: Request) -> int:
        """Return the number of hosts for the first instance of a request; 0 unless all instances fit."""
        try:
            shape = self._scheduler.compile_shape(request)
        except (BadRequest, NotFound):  # The reduced request is empty or invalid.
            return 0
        hosts = len(Matrix(shape, self._state).passing())
        fits = hosts and (request.count == 1 or self._scheduler.trial_picks(request, seed=self._seed))
        return hosts if fits else 0

    def _reduce_amount(self, request: Request, requested: RequestedAmount, matrix: Matrix) -> Change | None:
        """Return the change to the largest fitting amount of one class."""
        class_id = self._state.class_ids.id_of(requested.resource_class)
        if class_id is None or requested.amount < 2:
            return None
        amounts = self._amounts(request, requested, matrix, class_id=class_id)
        if not amounts:
            return None
        change = self._try_amount(request, requested, amounts[-1])
        if change is None and len(amounts) <= _ATTEMPTS_MAX and not self._state.inventory(class_id).plain_units:
            # With unit bounds a smaller amount may fail too.
            changes = (self._try_amount(request, requested, amount) for amount in amounts[-2::-1])
            return next((change for change in changes if change is not None), None)
        if change is not None:
            return change
        low, high = 0, len(amounts) - 1  # Amounts before ``low`` fit; the one at ``high`` does not.
        while low < high:
            middle = (low + high) // 2
            smaller = self._try_amount(request, requested, amounts[middle])
            if smaller is None:
                high = middle
            else:
                change, low = smaller, middle + 1
        return change

    def _try_amount(self, request: Request, requested: RequestedAmount, amount: int) -> Change | None:
        return next(self._find_fitting([relaxations.reduce_amount(request, requested, amount)]), None)

    def _amounts(self, request: Request, requested: RequestedAmount, matrix: Matrix, *, class_id: int) -> Sequence[int]:
        """Return smaller amounts, ascending, including the largest one that fits.

        One provider must serve the whole amount.
        """
        state = self._state
        columns = state.inventory(class_id)
        offering = columns.total.view > 0
        if request.count > 1:
            step = int(columns.step_size.view[offering].min(initial=requested.amount))
            return range(step, requested.amount, step)
        hosts = self._find_short_hosts(class_id, requested, matrix)
        if not hosts.any():
            return ()
        host_of, _ = state.host_trees()
        near = host_of >= 0
        near[near] = hosts[host_of[near]]
        near[state.sharing_rows()] = True
        rows = np.flatnonzero(near & offering)
        if columns.plain_units:
            free_max = int(columns.free.view[rows].max(initial=0))
            return range(1, min(free_max, requested.amount - 1) + 1)
        largest = np.minimum(np.minimum(columns.free.view[rows], columns.max_unit.view[rows]), requested.amount - 1)
        largest -= largest % columns.step_size.view[rows]
        largest = largest[largest >= np.maximum(columns.min_unit.view[rows], 1)]
        fitting: list[int] = np.unique(largest).tolist()
        return fitting

    @staticmethod
    def _find_short_hosts(class_id: int, requested: RequestedAmount, matrix: Matrix) -> Mask:
        """Return the hosts that may accept a smaller amount of a class: bool, shape (hosts,)."""
        mask: Mask = np.zeros(len(matrix.alive), dtype=np.bool_)
        fit, is_checked = matrix.shape.fit, False
        for at, check in enumerate(fit.checks):
            if isinstance(check, AmountCheck):
                is_short = not any(requested.suffixes) and check.class_id == class_id
            elif isinstance(check, GroupCheck):
                is_short = any(requested.suffixes) and class_id in dict(check.amounts)
            else:
                continue
            if is_short:
                is_checked = True
                mask |= matrix.only(at)
        if not fit.is_exact:
            mask |= matrix.only(len(fit.checks))
            if not is_checked:  # With sharing providers, groups are only searched, not counted.
                mask |= matrix.alive & (matrix.failures <= 1)
        return mask
