"""Explains a decision in full: each rule's rejections, the nearest hosts, and the changes that would fit."""

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
# Relaxations, and the subjects of the checks that each can turn. A filter may read everything.
_RELAXATIONS: tuple[tuple[Callable[[Request, State], Iterable[Relaxation]], frozenset[Subject]], ...] = (
    (relaxations.without_traits, frozenset({"trait", "group", "search", "rule"})),
    (relaxations.other_zones, frozenset({"aggregate", "search", "rule"})),
    (relaxations.without_aggregates, frozenset({"aggregate", "search", "rule"})),
    (relaxations.without_server_group, frozenset({"rule"})),
    (relaxations.without_named_hosts, frozenset({"hosts", "tree", "search", "rule"})),
    (relaxations.other_images, frozenset({"trait", "class", "rule"})),
    (relaxations.without_capabilities, frozenset({"trait", "class", "rule"})),
)
# Upper bound on attempts per kind of relaxation, for requests with hundreds of groups or traits.
_RELAXATIONS_MAX = 64
# Upper bound on attempted amounts if only a search can tell which one fits.
_TRIES_MAX = 64


class Explainer:
    """Explains requests on the current columns, without changes to them.

    Args:
        placement, scheduler: the ones to explain.
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
            changes, never: if known, because the instance is one of several.

        Raises:
            BadRequest: the request is invalid.
            NotFound: a named resource does not exist.
        """
        shape = self._scheduler.compile_shape(request)
        matrix = Matrix(shape, self._state)
        stages = matrix.stages()
        left = stages[-1].after if stages else int(np.count_nonzero(matrix.alive))
        hosts = stages[0].before if stages else left
        rules = matrix.rules(stages)
        if left:
            ranking, tips = explain_ranking(matrix, RANKED)
            return Explanation(hosts=hosts, left=left, rules=rules, ranking=ranking, tips=tips)
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
        """Return the smallest change of each kind with which all instances fit, ordered by the hosts it opens.

        Args:
            request: for several instances.
            seed: seed of random draws among the best hosts.
        """
        self._seed = seed
        one = msgspec.structs.replace(request, count=1, instance_uuids=())
        return self._changes(request, Matrix(self._scheduler.compile_shape(one), self._state))

    def _never(self, shape: Shape) -> Never:
        """Explain the request on the fleet without consumers."""
        spec, group = shape.spec, shape.spec.group
        alone = Spec(
            spec.request,
            now_s=spec.now_s,
            group=None if group is None else empty_group(group),
            moved_uuid=spec.moved_uuid,
            pci_requests=spec.pci_requests,
            queries=spec.queries,
        )
        stages = Matrix(shape, self._empty_state(), alone).stages()
        if stages[-1].after:
            return Never(could_fit=True)
        return Never(could_fit=False, reason=shape.evidence.reason(stages))

    def _changes(self, request: Request, matrix: Matrix) -> list[Change]:
        """Return the smallest change of each kind with which the request fits, ordered by the hosts it opens."""
        changes: list[Change] = []
        query = matrix.shape.query
        if query is None:
            return changes
        for asked in relaxations.query_amounts(query)[:_RELAXATIONS_MAX]:
            change = self._reduce_amount(request, asked, matrix)
            if change is not None:
                changes.append(change)
        if request.count > 1 or matrix.could_open(("amount", "group", "class", "search", "rule")):
            most = {} if request.count > 1 else self._most_groups(matrix)
            changes.extend(islice(self._find_fitting(relaxations.fewer_groups(request, query, most)), 1))
        for relax, subjects in _RELAXATIONS:
            # Another instance of the request may need a change that this one does not need.
            if request.count > 1 or matrix.could_open(subjects):
                changes.extend(self._find_fitting(relax(request, self._state)))
        return sorted(changes, key=lambda change: -change.hosts)

    def _most_groups(self, matrix: Matrix) -> dict[tuple[str, ...], int]:
        """Return, by suffixes, how many equal groups the best host without other shortfalls can serve."""
        return {
            check.suffixes: int(check.count_by_host(self._state)[matrix.only(at)].max(initial=0))
            for at, check in enumerate(matrix.shape.fit.checks)
            if isinstance(check, GroupCheck) and matrix.shape.fit.is_exact
        }

    def _find_fitting(self, tried: Iterable[Relaxation]) -> Iterator[Change]:
        for edit in islice(tried, _RELAXATIONS_MAX):
            hosts = self._count_hosts(edit.request)
            if hosts:
                yield Change(kind=edit.kind, text=edit.text, hosts=hosts, request=edit.request)

    def _count_hosts(self, request: Request) -> int:
        """Return the hosts for the first instance of a request, 0 unless all instances fit."""
        try:
            shape = self._scheduler.compile_shape(request)
        except (BadRequest, NotFound):  # The reduced request is empty or invalid.
            return 0
        hosts = len(Matrix(shape, self._state).passing())
        return hosts if hosts and (request.count == 1 or self._scheduler.can_place_all(request, seed=self._seed)) else 0

    def _reduce_amount(self, request: Request, asked: RequestedAmount, matrix: Matrix) -> Change | None:
        """Return the change to the largest fitting amount of one class."""
        class_id = self._state.class_ids.id_of(asked.resource_class)
        if class_id is None or asked.amount < 2:
            return None
        amounts = self._amounts(request, asked, matrix, class_id=class_id)
        if not amounts:
            return None
        change = self._with_less(request, asked, amounts[-1])
        if change is None and len(amounts) <= _TRIES_MAX and not self._state.inventory(class_id).plain_units:
            # With unit bounds a smaller amount may fail too.
            tried = (self._with_less(request, asked, amount) for amount in amounts[-2::-1])
            return next((change for change in tried if change is not None), None)
        if change is not None:
            return change
        low, high = 0, len(amounts) - 1  # Amounts before ``low`` fit; the one at ``high`` does not.
        while low < high:
            middle = (low + high) // 2
            smaller = self._with_less(request, asked, amounts[middle])
            if smaller is None:
                high = middle
            else:
                change, low = smaller, middle + 1
        return change

    def _with_less(self, request: Request, asked: RequestedAmount, amount: int) -> Change | None:
        return next(self._find_fitting([relaxations.reduce_amount(request, asked, amount)]), None)

    def _amounts(self, request: Request, asked: RequestedAmount, matrix: Matrix, *, class_id: int) -> Sequence[int]:
        """Return smaller amounts, ascending, including the largest one that fits.

        An instance on one host can have no more than one of its providers offers.
        """
        state = self._state
        columns = state.inventory(class_id)
        offering = columns.total.view > 0
        if request.count > 1:
            step = int(columns.step_size.view[offering].min(initial=asked.amount))
            return range(step, asked.amount, step)
        hosts = self._short_of(class_id, asked, matrix)
        if not hosts.any():
            return ()
        host_of, _ = state.host_trees()
        near = host_of >= 0
        near[near] = hosts[host_of[near]]
        near[state.sharing_rows()] = True
        rows = np.flatnonzero(near & offering)
        if columns.plain_units:
            most_free = int(columns.free.view[rows].max(initial=0))
            return range(1, min(most_free, asked.amount - 1) + 1)
        most = np.minimum(np.minimum(columns.free.view[rows], columns.max_unit.view[rows]), asked.amount - 1)
        most -= most % columns.step_size.view[rows]
        most = most[most >= np.maximum(columns.min_unit.view[rows], 1)]
        fitting: list[int] = np.unique(most).tolist()
        return fitting

    @staticmethod
    def _short_of(class_id: int, asked: RequestedAmount, matrix: Matrix) -> Mask:
        """Return the hosts that less of a class may open: bool, shape (hosts,)."""
        mask: Mask = np.zeros(len(matrix.alive), dtype=np.bool_)
        fit, is_checked = matrix.shape.fit, False
        for at, check in enumerate(fit.checks):
            if isinstance(check, AmountCheck):
                is_short = not any(asked.suffixes) and check.class_id == class_id
            elif isinstance(check, GroupCheck):
                is_short = any(asked.suffixes) and class_id in dict(check.amounts)
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
