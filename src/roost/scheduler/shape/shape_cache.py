"""A cache of compiled pipelines: similar requests share one until a static change."""

import math
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass

import msgspec
import numpy as np

from roost.engine.candidates.query import UnknownNames, compile_query
from roost.engine.columns.state import State
from roost.engine.columns.types import Mask
from roost.engine.feasibility.feasibility import Feasibility, combine_either
from roost.engine.feasibility.query_checks import (
    Origins,
    accept_remote,
    check_aggregates,
    compile_feasibility,
    refuse_all,
    refuse_unknown_names,
)
from roost.errors import BadRequest, NotFound
from roost.model.devices.pci import PciRequest
from roost.model.evidence.fleet_part import FleetPart
from roost.model.names import amount_text, is_resource_class, is_trait, uuid_form
from roost.model.placement.remote import RemoteHost
from roost.model.request import CandidateQuery, Request
from roost.model.settings.roost_settings import Pci
from roost.model.settings.roost_settings import Scheduler as SchedulerSettings
from roost.scheduler.filters.fault_domain import FaultDomain
from roost.scheduler.filters.server_group_affinity import ServerGroupAffinity
from roost.scheduler.filters.server_group_anti_affinity import ServerGroupAntiAffinity
from roost.scheduler.framework import plugin
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.plugin import Filter, Judge, NoOptions, Rules, SupportsWarnings, implements
from roost.scheduler.framework.request_key import normalize_request, request_key
from roost.scheduler.framework.spec import Spec
from roost.scheduler.query.build import Refusal, build_aggregate_query, build_query
from roost.scheduler.query.extra_spec_groups import disk_gb
from roost.scheduler.query.pci_requests import PciAliases
from roost.scheduler.query.prefilter import Effect
from roost.scheduler.shape.candidate_choice import Agreement
from roost.scheduler.shape.own_hosts import OwnHosts, OwnMask
from roost.scheduler.shape.score_table import ScoreTable
from roost.scheduler.shape.scratch import Scratch
from roost.scheduler.shape.shape import Shape

# Returns the first candidate of a query on each host, by host row, and the problem if it cannot be answered.
HostSearch = Callable[[CandidateQuery], tuple[dict[int, RemoteHost], str]]
# Upper bound on cached shapes, about 40 bytes per host each; the least recently used one is dropped.
_SHAPES_MAX = 256
# The commit guards the policy of a server group regardless of the settings, and for forced hosts too. So no
# host may be chosen that the commit would refuse.
_GUARDS: tuple[Callable[[NoOptions], Filter], ...] = (ServerGroupAntiAffinity, ServerGroupAffinity, FaultDomain)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Verdict:
    """A filter's verdicts on all hosts, and how long they hold as time passes."""

    mask: Mask | None  # bool, shape (hosts,); None: judge at each decision
    holds_until_s: float


_PER_DECISION = _Verdict(mask=None, holds_until_s=math.inf)


class ShapeCache:
    """The pipelines of recent shapes, for one state."""

    def __init__(
        self,
        rules: Rules,
        *,
        default_zone: str,
        settings: SchedulerSettings,
        has_fallback: bool = True,
        aliases: PciAliases | None = None,
        is_pci_placed: bool = False,
        host_search: HostSearch | None = None,
    ) -> None:
        self._rules = rules
        self._judges = [Judge(rule) for rule in rules.filters]
        self._guards = [Judge(guard(NoOptions())) for guard in _GUARDS]
        self._weigher_warners = [rule for rule in rules.weighers if implements(rule, SupportsWarnings)]
        self._host_search = host_search  # searches elsewhere; None: search the columns
        self._settings = settings
        self._has_fallback = has_fallback  # whether VCPU may replace PCPU
        self._aliases = aliases or PciAliases(Pci())
        self._is_pci_placed = is_pci_placed  # whether Placement allocates PCI devices
        self._default_zone = default_zone
        self._state = State()
        # Request key, whether it is for several instances, and the part of the fleet -> shape, and when it expires.
        self._shapes: OrderedDict[tuple[bytes, bool, FleetPart | None], tuple[Shape, float]] = OrderedDict()
        self._own_mask = OwnMask()
        self._fits: dict[Hashable, Feasibility] = {}
        self._verdicts: dict[Hashable, _Verdict] = {}
        self._score_tables: dict[tuple[tuple[str, ...], tuple[bool, ...]], ScoreTable] = {}
        self._scratch = Scratch(0)
        self._epoch = -1

    def get(self, request: Request, *, state: State, now_s: float, part: FleetPart | None = None) -> Shape:
        """Return the pipeline for a request, cached or compiled.

        Args:
            request: the request.
            state: the columns.
            now_s: seconds since the epoch.
            part: accept only hosts of this part; None: of the whole fleet.

        Raises:
            BadRequest: the request names an unknown class or trait, or has an invalid hint.
            NotFound: its server group does not exist.
        """
        self._invalidate(state)
        key = request_key(request)
        if request.move is not None:  # Not cached, because the present host differs with each move.
            return self._compile(normalize_request(request, key), now_s, part=part)[0]
        cache_key = (key, request.count > 1, part)
        entry = self._shapes.get(cache_key)
        if entry is not None and now_s <= entry[1]:
            self._shapes.move_to_end(cache_key)
            return entry[0]
        shape, holds_until_s = self._compile(normalize_request(request, key), now_s, part=part)
        self._shapes[cache_key] = (shape, holds_until_s)
        if len(self._shapes) > _SHAPES_MAX:
            self._shapes.popitem(last=False)
        return shape

    def compile(
        self,
        request: Request,
        *,
        state: State,
        now_s: float,
        among: Mask | None = None,
        part: FleetPart | None = None,
    ) -> Shape:
        """Return the pipeline without caching it, for a hypothetical request that will hardly be repeated.

        Args:
            request, state, now_s, part: as for ``get``.
            among: bool, shape (hosts,), the only hosts to judge; None: all.
        """
        self._invalidate(state)
        key = request_key(request)
        entry = self._shapes.get((key, request.count > 1, part))
        if entry is not None and among is None and now_s <= entry[1]:
            return entry[0]
        return self._compile(normalize_request(request, key), now_s, among=among, part=part)[0]

    def _invalidate(self, state: State) -> None:
        """Drop all caches of another state, or of this state before a static change."""
        if state is not self._state or state.changes.epoch != self._epoch:
            self._state, self._epoch = state, state.changes.epoch
            self._shapes.clear()
            self._fits.clear()
            self._verdicts.clear()
            self._score_tables.clear()
            self._scratch = Scratch(len(state.hosts))

    def _compile(
        self, request: Request, now_s: float, *, among: Mask | None = None, part: FleetPart | None = None
    ) -> tuple[Shape, float]:
        state = self._state
        state.check()
        joined, group = request.group_joined, None
        if joined is not None:
            group = state.groups_by_uuid.get(uuid_form(joined))
            if group is None:
                raise NotFound("server group", joined)
        devices = self._aliases.requests(request)
        placed = tuple(device for device in devices if device.source == "flavor") if self._is_pci_placed else ()
        query, fit, warnings, stop_reason = self._build_fit(request, placed)
        queries = tuple(way.compiled for way in fit.ways if way.compiled is not None) if placed else ()
        moved_uuid = None if request.move is None else request.move.instance_uuid
        spec = Spec(request, group=group, now_s=now_s, moved_uuid=moved_uuid, pci_requests=devices, queries=queries)
        allowed = _find_allowed_hosts(state, request)
        if among is not None:
            allowed = ("are not among the allowed hosts", among if allowed is None else allowed[1] & among)
        is_forced = bool(request.force_hosts or request.force_nodes) and not spec.hint_list("_nova_check_type")
        judges = self._select_judges(spec, is_forced=is_forced)
        for judge in judges:
            if judge.request_check is not None:
                judge.request_check.check(spec)
        verdicts = [self._verdict(judge, spec) for judge in judges]
        if part is not None:
            own = OwnHosts(self._own_mask.find(state, part), len(part.processes))
            judges.append(Judge(own))
            verdicts.append(_Verdict(mask=own.mask, holds_until_s=math.inf))
        all_hosts = HostView(state)
        warnings += self._rules.request_problems(request)
        for rule in (*(judge.warner for judge in judges), *self._weigher_warners):
            if rule is not None:
                warnings += tuple(rule.warnings(all_hosts, spec))
        score_table = self._score_table(spec)
        shape = Shape(
            state,
            spec,
            query=query,
            warnings=tuple(dict.fromkeys((*warnings, *score_table.warnings))),
            fit=fit,
            allowed=allowed,
            filters=[(judge, verdict.mask) for judge, verdict in zip(judges, verdicts, strict=True)],
            score_table=score_table,
            scratch=self._scratch,
            stop_reason=stop_reason,
        )
        return shape, min((verdict.holds_until_s for verdict in verdicts), default=math.inf)

    def _build_fit(
        self, request: Request, placed: tuple[PciRequest, ...]
    ) -> tuple[CandidateQuery | None, Feasibility, tuple[str, ...], str]:
        """Return the query, its checks, the ignored parts of the request, and the reason if no host can match."""
        state, settings, zone = self._state, self._settings, self._default_zone
        if not state.hosts.are_self_reported:
            built = build_query(
                request, state, settings=settings, default_zone=zone, has_fallback=self._has_fallback, placed=placed
            )
            if built.refusal is not None:
                return built.query, self._refusal_fit(built.refusal), built.warnings, built.refusal.reason
            if self._host_search is not None:
                return (
                    built.query,
                    self._search_remote(self._host_search, built.query, built.fallback),
                    built.warnings,
                    "",
                )
            origins = _origins(built.effects)
            fit = self._fit(built.query, origins)
            if built.fallback is not None:
                second = self._fit(built.fallback, origins)
                # A query with unknown names adds no host to the other one.
                if fit.compiled is None:
                    fit = second
                elif second.compiled is not None:
                    fit = combine_either(state, fit, second, reason=_either_reason(built.query, built.fallback))
            return built.query, fit, built.warnings, ""
        static = build_aggregate_query(request, state, settings=settings, default_zone=zone)
        if static.refusal is not None:
            return None, self._refusal_fit(static.refusal), static.warnings, static.refusal.reason
        flavor = request.flavor
        # The amounts that Nova's host states count, regardless of further resources in the flavor.
        amounts = {"VCPU": flavor.vcpus, "MEMORY_MB": flavor.memory_mb, "DISK_GB": disk_gb(request)}
        positive = {name: amount for name, amount in amounts.items() if amount}
        fit = check_aggregates(state, static.group, positive, origins=_origins(static.effects))
        return None, fit, static.warnings, ""

    def _search_remote(
        self, host_search: HostSearch, query: CandidateQuery, fallback: CandidateQuery | None
    ) -> Feasibility:
        """Return the hosts found elsewhere for a query, and for its fallback. The candidates of the query are first.

        A query with unknown names is refused, but adds no host to the other one.
        """
        found, problem = host_search(query)
        if fallback is not None:
            others, its_problem = host_search(fallback)
            found, problem = others | found, problem and its_problem
        if problem:
            return self._refusal_fit(Refusal(rule="search", reason=f"Placement refuses the query: {problem}"))
        return accept_remote(self._state, found)

    def _refusal_fit(self, refusal: Refusal) -> Feasibility:
        return refuse_all(self._state, rule=refusal.rule, reason=refusal.reason)

    def _select_judges(self, spec: Spec, *, is_forced: bool) -> list[Judge]:
        """Return the filters that concern a request.

        The filters of its server group are always included, because the commit guards its policy.
        """
        judges = (
            []
            if is_forced
            else [
                judge
                for judge in self._judges
                if (judge.run_on_rebuild or not spec.is_rebuild) and judge.rule.concerns(spec)
            ]
        )
        if spec.group is not None:
            enabled = {judge.name for judge in judges}
            judges += [guard for guard in self._guards if guard.name not in enabled and guard.rule.concerns(spec)]
        if spec.queries:
            agreement = Agreement([judge.candidate_judge for judge in judges if judge.candidate_judge is not None])
            judges += [Judge(agreement)] if agreement.concerns(spec) else []
        return judges

    def _verdict(self, judge: Judge, spec: Spec) -> _Verdict:
        """Return a filter's verdicts on all hosts if they outlast one decision."""
        rule = judge.rule
        if rule.reads(spec) != "facts":
            return _PER_DECISION
        key = None if judge.shareable is None else (judge.name, judge.shareable.verdict_key(spec))
        cached = None if key is None else self._verdicts.get(key)
        if cached is not None and spec.now_s <= cached.holds_until_s:
            return cached
        all_hosts = HostView(self._state)
        holds_until_s = (
            math.inf if judge.time_dependent is None else judge.time_dependent.holds_until_s(all_hosts, spec)
        )
        verdict = _Verdict(mask=rule.keep(all_hosts, spec), holds_until_s=holds_until_s)
        if judge.fallible is not None and judge.fallible.fault is not None:
            return _PER_DECISION  # The rule may succeed the next time.
        if key is not None:
            if len(self._verdicts) >= _SHAPES_MAX:
                self._verdicts.clear()
            self._verdicts[key] = verdict
        return verdict

    def _score_table(self, spec: Spec) -> ScoreTable:
        """Return the score table of a request, cached if its raw weights depend only on hosts."""
        weighers = [rule for rule in self._rules.weighers if rule.concerns(spec)]
        is_consumed = tuple([plugin.changes_per_instance(rule, spec) for rule in weighers]) if spec.is_multiple else ()
        key = (tuple([rule.name for rule in weighers]), is_consumed)
        table = self._score_tables.get(key)
        if table is None:
            table = ScoreTable(self._state, spec, weighers)
            if table.is_lasting:
                self._score_tables[key] = table
        return table

    def _fit(self, query: CandidateQuery, origins: Origins) -> Feasibility:
        """Return the checks of a query; if it names an unknown class or trait, nothing is compiled."""
        key = (msgspec.msgpack.encode(query, order="sorted"), tuple(origins.items()))
        fit = self._fits.get(key)
        if fit is None:
            compiled = compile_query(self._state, query)
            if isinstance(compiled, UnknownNames):
                _check_names(compiled)
            unused_traits = self._traits_without_provider(query)
            if unused_traits:
                query = _without(query, unused_traits)
                compiled = compile_query(self._state, query)
            if len(self._fits) >= _SHAPES_MAX:
                self._fits.clear()
            if isinstance(compiled, UnknownNames):
                fit = refuse_unknown_names(self._state, compiled, origins=origins)
            else:
                fit = compile_feasibility(self._state, query, compiled, origins=origins)
            self._fits[key] = fit
        return fit

    def _traits_without_provider(self, query: CandidateQuery) -> frozenset[str]:
        """Return the query's traits that no provider ever had, and the root-forbidden ones that no provider has now."""
        state = self._state
        named = query.root_forbidden.union(*(group.forbidden.union(*group.required) for group in query.groups))
        ids = {trait: state.trait_ids.id_of(trait) for trait in named}
        return frozenset(
            trait
            for trait, number in ids.items()
            if number is None or (trait in query.root_forbidden and not state.traits.mask_of(number).any())
        )


def _origins(effects: tuple[tuple[str, Effect], ...]) -> Origins:
    """Return the pre-filter behind each part of a query."""
    origins: dict[Hashable, str] = {}
    for name, effect in effects:
        origins.update((("root", trait), name) for trait in effect.root_required | effect.root_forbidden)
        origins.update((("member_of", aggregates), name) for aggregates in effect.member_of)
        origins.update((("avoid", aggregate), name) for aggregate in effect.forbidden_aggregates)
    return origins


def _either_reason(query: CandidateQuery, fallback: CandidateQuery) -> str:
    """Describe hosts that match neither of two queries, which differ in the group without suffix."""
    amounts, fallback_amounts = (
        {name: amount for group in each.groups if not group.suffix for name, amount in group.resources.items()}
        for each in (query, fallback)
    )
    first, second = (
        " and ".join(amount_text(name, own[name]) for name in sorted(own) if other.get(name) != own[name])
        for own, other in ((amounts, fallback_amounts), (fallback_amounts, amounts))
    )
    return f"lack {first} or more, and {second} or more in its place"


def _without(query: CandidateQuery, traits: frozenset[str]) -> CandidateQuery:
    """Remove unused traits from the forbidden traits of a query, and from alternatives with a used trait."""
    groups = [
        msgspec.structs.replace(
            group,
            forbidden=group.forbidden - traits,
            required=tuple(names - traits or names for names in group.required),
        )
        for group in query.groups
    ]
    return msgspec.structs.replace(query, groups=tuple(groups), root_forbidden=query.root_forbidden - traits)


def _check_names(unknown: UnknownNames) -> None:
    """Refuse malformed names.

    Raises:
        BadRequest: a name is malformed.
    """
    for name in unknown.resource_classes:
        if not is_resource_class(name):
            raise BadRequest(f"{name!r} is neither a standard resource class nor CUSTOM_[A-Z0-9_]+")
    for name in unknown.traits:
        if not is_trait(name):
            raise BadRequest(f"{name!r} is neither a standard trait nor CUSTOM_[A-Z0-9_]+")


def _find_allowed_hosts(state: State, request: Request) -> tuple[str, Mask] | None:
    """Return the hosts that a request allows by name, with the reason of the others; None if it names none.

    As in Nova, letter case matters in node names, but not in host names.
    """
    destination = request.destination
    target, node = (None, None) if destination is None else (destination.host, destination.node)
    cell = None if destination is None or destination.allow_cross_cell_move else destination.cell
    leaves = request.move is not None and not request.move.may_stay
    if not (request.ignore_hosts or request.force_hosts or request.force_nodes or target or node or cell or leaves):
        return None
    hosts = state.hosts
    mask: Mask = hosts.alive.view.copy()
    if target is not None:
        mask &= _host_mask(state, (target,))
    if node is not None:
        mask &= np.array([name == node for name in hosts.nodes], dtype=np.bool_)
    if cell:
        mask &= HostView(state).in_cell(cell)
    if leaves and request.move is not None:
        mask &= ~HostView(state).holds_instance(request.move.instance_uuid)
    if request.ignore_hosts:
        mask &= ~_host_mask(state, request.ignore_hosts)
    if request.force_hosts:
        mask &= _host_mask(state, request.force_hosts)
    if request.force_nodes:
        nodes = frozenset(request.force_nodes)
        mask &= np.array([name in nodes for name in hosts.nodes], dtype=np.bool_)
    names_hosts = bool(target or node or request.force_hosts or request.force_nodes)
    return _reason_of_names(request, names_hosts=names_hosts, has_cell=bool(cell), leaves=leaves), mask


def _reason_of_names(request: Request, *, names_hosts: bool, has_cell: bool, leaves: bool) -> str:
    """Return why a request does not allow a host by name, with the conditions of the request only."""
    outside = " or ".join(text for text, applies in (("hosts", names_hosts), ("cell", has_cell)) if applies)
    parts = [f"are outside the requested {outside}"] if outside else []
    parts += ["are ignored"] if request.ignore_hosts else []
    parts += ["hold the moving instance"] if leaves else []
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])}, or {parts[-1]}"


def _host_mask(state: State, names: tuple[str, ...]) -> Mask:
    mask = np.zeros(len(state.hosts), dtype=np.bool_)
    mask[state.hosts.find_rows(names)] = True
    return mask
