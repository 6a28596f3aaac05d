"""Decisions on documents: the scheduler's own code on temporary columns."""

import numpy as np

from roost import __version__
from roost.app import Roost
from roost.engine.ranking import ranks
from roost.errors import BadFile, BadRequest, ComputeHostMetricNotFound, Conflict, NotFound
from roost.model.documents.answer import Answer, AnswerPick, AnswerSettings, AnswerStage, ProviderShare, RankedHost
from roost.model.documents.fleet_document import FleetDocument
from roost.model.documents.request_document import RequestDocument
from roost.model.evidence.decision import Contribution, Decision, HostScore, Pick, cells
from roost.model.settings.roost_settings import Settings
from roost.offline.load import DocumentFleet
from roost.offline.refusals import find_stages
from roost.offline.request_names import resolve_request
from roost.scheduler.explain.frozen_clock import FixedClock, FixedRandom
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.shape.host_ranking import Ranking
from roost.scheduler.shape.shape import Shape

_SEARCHED = (
    "The search for candidates used the providers of the fleet; filters and weighers judged hosts with a candidate."
)
_UNSEARCHED = (
    "The fleet has no providers: inventories and traits were not checked. Filters and weighers judged the hosts by "
    "their attributes."
)


def find_moment(fleet: FleetDocument) -> float:
    """Find the moment of a fleet: its ``now``, else the latest report of a service, else 0."""
    if fleet.now is not None:
        return fleet.now
    reports = [host.service.last_seen_up for host in fleet.hosts if host.service.last_seen_up is not None]
    return max(reports, default=0.0)


def decide(
    fleet: FleetDocument,
    request: RequestDocument,
    settings: Settings,
    *,
    seed: int = 0,
    now_s: float | None = None,
    fleet_name: str = "fleet",
    request_name: str = "request",
) -> Answer:
    """Decide a request on a fleet, without storing anything.

    Args:
        fleet, request: the documents.
        settings: rules and options.
        seed: seed of the draw among the best hosts, 0..2**62 - 1.
        now_s: the moment, in seconds since the epoch; None: the moment of the fleet.
        fleet_name, request_name: names of the documents in errors.

    Raises:
        BadFile: a document has an unknown or duplicate name, or an invalid request.
        ComputeHostMetricNotFound: a host lacks a metric that the settings require.
    """
    moment = find_moment(fleet) if now_s is None else now_s
    loaded = DocumentFleet(
        fleet, file=fleet_name, settings=settings, clock=FixedClock(moment), random=FixedRandom(seed)
    )
    resolved = resolve_request(request, loaded, file=request_name)
    evidence = _Evidence(loaded.roost)
    try:
        decision = loaded.roost.decide(resolved)
    except ComputeHostMetricNotFound:
        raise
    except (BadRequest, NotFound, Conflict) as error:
        raise BadFile(request_name, str(error)) from None
    return evidence.build_answer(
        decision, is_searched=loaded.is_searched, has_uuids=bool(resolved.instance_uuids), now_s=moment
    )


class _Evidence:
    """Collects the evidence of a decision after its ranking, before its claims change the columns."""

    def __init__(self, roost: Roost) -> None:
        self._roost = roost
        self._stages: tuple[AnswerStage, ...] = ()
        self._ranking: tuple[RankedHost, ...] = ()
        roost.scheduler.witness = self._observe

    def _observe(self, shape: Shape) -> None:
        state = self._roost.state
        self._stages = find_stages(state, shape)
        ranked = shape.rank_all()
        rows, hosts = ranked.rows, state.hosts
        self._ranking = tuple(
            RankedHost(host=hosts.names[row], nodename=hosts.nodes[row], total=score.total, weights=weights)
            for row, score, weights in zip(
                rows, shape.evidence.table(ranked, limit=len(rows)), self._weights(shape, ranked), strict=True
            )
        )

    def _weights(self, shape: Shape, ranked: Ranking) -> list[tuple[Contribution, ...]]:
        """Return the weights of each ranked host, one per enabled weigher; no weights if there is a single host."""
        if len(ranked.rows) < 2:
            return [()] * len(ranked.rows)
        scales = shape.evidence.scales(ranked)
        scores = shape.evidence.table(ranked, limit=len(ranked.rows))
        tables = [{cell.weigher: cell for cell in cells(scales, score)} for score in scores]
        for weigher in self._roost.rules.weighers:
            if any(weigher.name == scale.weigher for scale in scales):
                continue
            # Inactive and irrelevant weighers add nothing, but are shown.
            raws = np.zeros(len(ranked.rows))
            if weigher.concerns(shape.spec):
                raws = weigher.raw(HostView(self._roost.state, np.array(ranked.rows, dtype=np.intp)), shape.spec)
            raws = ranks.clamp(raws, minval=weigher.minval, maxval=weigher.maxval)
            scale = ranks.scale_of(
                raws, weigher=weigher.name, minval=weigher.minval, maxval=weigher.maxval, multiplier=weigher.multiplier
            )
            for table, raw in zip(tables, raws.tolist(), strict=True):
                (table[weigher.name],) = cells([scale], HostScore("", 0.0, [raw]))
        return [tuple(table[weigher.name] for weigher in self._roost.rules.weighers) for table in tables]

    def build_answer(self, decision: Decision, *, is_searched: bool, has_uuids: bool, now_s: float) -> Answer:
        """Return the decision with its evidence."""
        settings, rules = self._roost.settings, self._roost.rules
        section = settings.filter_scheduler
        return Answer(
            roost=__version__,
            outcome=decision.outcome,
            reason=decision.reason,
            searched=is_searched,
            scope=_SEARCHED if is_searched else _UNSEARCHED,
            count=decision.count,
            picks=tuple(self._pick(pick, has_uuid=has_uuids) for pick in decision.picks),
            alternates={
                cell: tuple(self._pick(pick, has_uuid=False) for pick in picks)
                for cell, picks in decision.alternates.items()
            },
            stages=self._stages,
            ranking=self._ranking if decision.is_granted else (),
            warnings=tuple(decision.warnings),
            settings=AnswerSettings(
                filters=tuple(rule.name for rule in rules.filters),
                weighers=tuple(rule.name for rule in rules.weighers),
                host_subset_size=section.host_subset_size,
                shuffle_best_same_weighed_hosts=section.shuffle_best_same_weighed_hosts,
                max_attempts=settings.scheduler.max_attempts,
                fingerprint=settings.fingerprint().hex(),
            ),
            seed=decision.seed,
            now=now_s,
        )

    def _pick(self, pick: Pick, *, has_uuid: bool) -> AnswerPick:
        providers = self._roost.state.providers
        return AnswerPick(
            host=pick.host,
            nodename=pick.node,
            cell_uuid=pick.cell,
            instance_uuid=pick.instance_uuid if has_uuid else None,
            allocations=tuple(
                ProviderShare(provider=providers.names[providers.row_of_uuid[uuid]], uuid=uuid, resources=resources)
                for uuid, resources in pick.allocations.items()
                if resources
            ),
            limits=pick.limits,
        )
