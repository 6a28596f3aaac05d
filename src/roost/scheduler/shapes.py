"""Requests that look alike share one pipeline: made when first seen, kept while nothing static changes."""

from collections import OrderedDict
from collections.abc import Sequence

import msgspec
import numpy as np

from roost.engine.feasible import Feasibility, feasibility, hopeless
from roost.engine.query import UnknownName, compile_query
from roost.engine.state import State
from roost.engine.types import Mask
from roost.errors import BadRequest, NotFound
from roost.model.names import is_resource_class, is_trait
from roost.model.request import CandidateQuery, Request
from roost.scheduler.hosts import HostView
from roost.scheduler.pipeline import Shape
from roost.scheduler.rules import Filter, Rules, Timed
from roost.scheduler.spec import Spec
from roost.scheduler.translate import translate

# Shapes kept at once; the one not used for longest goes first. One takes about 40 bytes a host.
_KEPT = 256


class Shapes:
    """The pipelines of all shapes seen lately, for one state."""

    def __init__(self, rules: Rules, *, default_zone: str) -> None:
        self._rules = rules
        self._default_zone = default_zone
        self._state = State()
        self._shapes: OrderedDict[bytes, tuple[Shape, float]] = OrderedDict()
        self._fits: dict[bytes, Feasibility] = {}
        self._epoch = -1

    def of(self, request: Request, *, state: State, now_s: float) -> Shape:
        """Return the pipeline for a request.

        Raises:
            BadRequest: the request names a class, trait or server group that does not exist.
            NotFound: it must go to a host that does not exist.
        """
        if state is not self._state or state.changes.epoch != self._epoch:
            self._state, self._epoch = state, state.changes.epoch
            self._shapes.clear()
            self._fits.clear()
        key = _key(request)
        known = self._shapes.get(key)
        if known is not None and now_s <= known[1]:
            self._shapes.move_to_end(key)
            return known[0]
        shape, holds_until_s = self._make(request, now_s)
        self._shapes[key] = (shape, holds_until_s)
        if len(self._shapes) > _KEPT:
            self._shapes.popitem(last=False)
        return shape

    def _make(self, request: Request, now_s: float) -> tuple[Shape, float]:
        state = self._state
        group = None
        if request.group is not None:
            group = state.groups_by_uuid.get(request.group)
            if group is None:
                raise NotFound("server group", request.group)
        spec = Spec(request, group=group, now_s=now_s)
        translated = translate(request, state, default_zone=self._default_zone)
        named = _named_hosts(state, request)
        is_forced = bool(request.force_hosts or request.force_nodes) and not spec.hint_list("_nova_check_type")
        filters: Sequence[Filter] = () if is_forced else self._rules.filters
        shape = Shape(
            state, spec, fit=self._fit(translated.query), named=named, filters=filters, weighers=self._rules.weighers
        )
        shape.warnings = list(translated.warnings)
        everyone = HostView(state)
        timed = [rule.holds_until_s(everyone, spec) for rule in filters if isinstance(rule, Timed)]
        return shape, min(timed, default=float("inf"))

    def _fit(self, query: CandidateQuery) -> Feasibility:
        key = msgspec.msgpack.encode(query, order="sorted")
        fit = self._fits.get(key)
        if fit is None:
            compiled = compile_query(self._state, query)
            if len(self._fits) >= _KEPT:
                self._fits.clear()
            if isinstance(compiled, UnknownName):
                fit = hopeless(self._state, _unknown_reasons(compiled))
            else:
                fit = feasibility(self._state, query, compiled)
            self._fits[key] = fit
        return fit


def _key(request: Request) -> bytes:
    """Return what rules may look at of a request, as bytes."""
    return msgspec.msgpack.encode(
        (
            request.flavor, request.image, request.hints, request.group, request.project_id,
            request.availability_zone, request.ignore_hosts, request.force_hosts, request.force_nodes,
            request.destination, request.groups,
        ),
        order="sorted",
    )  # fmt: skip


def _unknown_reasons(unknown: UnknownName) -> list[str]:
    """Return what every host lacks: well-formed names that no provider ever had.

    Raises:
        BadRequest: a name is not well-formed.
    """
    for name in unknown.resource_classes:
        if not is_resource_class(name):
            raise BadRequest(f"{name!r} is neither a standard resource class nor CUSTOM_[A-Z0-9_]+")
    for name in unknown.traits:
        if not is_trait(name):
            raise BadRequest(f"{name!r} is neither a standard trait nor CUSTOM_[A-Z0-9_]+")
    return [f"offer no {name}" for name in unknown.resource_classes] + [f"lack trait {name}" for name in unknown.traits]


def _named_hosts(state: State, request: Request) -> tuple[str, Mask] | None:
    """Return the hosts that a request allows by name, with the reason of the others; None if it names none.

    Letter case counts in the names of nodes, not in those of hosts, as it does in Nova.
    """
    destination = request.destination
    target, node = (None, None) if destination is None else (destination.host, destination.node)
    if not (request.ignore_hosts or request.force_hosts or request.force_nodes or target or node):
        return None
    hosts = state.hosts
    mask = np.ones(len(hosts), dtype=np.bool_)
    if target is not None:
        mask &= _rows_mask(state, (target,))
    if node is not None:
        mask &= np.array([name == node for name in hosts.nodes], dtype=np.bool_)
    if (target or node) and not mask.any():
        raise NotFound("host", f"{target or ''} {node or ''}".strip())
    if request.ignore_hosts:
        mask &= ~_rows_mask(state, request.ignore_hosts)
    if request.force_hosts:
        mask &= _rows_mask(state, request.force_hosts)
    if request.force_nodes:
        wanted = frozenset(request.force_nodes)
        mask &= np.array([name in wanted for name in hosts.nodes], dtype=np.bool_)
    return "are not the hosts asked for, or are to be ignored", mask


def _rows_mask(state: State, names: tuple[str, ...]) -> Mask:
    mask = np.zeros(len(state.hosts), dtype=np.bool_)
    mask[state.hosts.rows_named(names)] = True
    return mask
