"""Explain a request for several instances: the first one without a host, after the others took theirs."""

from typing import Protocol

import msgspec

from roost.model.evidence.decision import Decision
from roost.model.evidence.explain import Change, Explanation, Never
from roost.model.request import Request
from roost.ports import Random
from roost.scheduler.explain.explainer import Explainer
from roost.scheduler.explain.frozen_clock import FixedRandom
from roost.scheduler.select import Scheduler


class Trial(Protocol):
    """A product on columns of its own; see ``roost.product.Roost``."""

    scheduler: Scheduler
    explainer: Explainer

    def fork(self, *, random: Random | None = None) -> "Trial":
        """Return a trial on a copy of the columns."""

    def without_consumers(self, *, random: Random | None = None) -> "Trial":
        """Return a trial without consumers and allocations."""

    def decide(self, request: Request) -> Decision:
        """Choose hosts for a request."""


def explain_several(product: Trial, request: Request, *, seed: int) -> Explanation:
    """Explain the first instance if all fit, else the first one without a host.

    Args:
        request: two or more instances, without uuids.
        seed: of the random draws, equal for all trials.
    """
    single = msgspec.structs.replace(request, count=1)
    draws = FixedRandom(seed)
    trial = product.fork(random=draws).decide(request)
    if trial.is_granted and trial.part is not None and trial.part.is_within:
        return product.explainer.explain(single)
    whole = product.fork(random=draws)
    whole.scheduler.is_partitioned = False  # The request was decided on the whole fleet.
    if trial.is_granted:
        return whole.explainer.explain(single)
    changes = product.explainer.changes(request, seed=draws.seed())
    if trial.found:
        fewer = msgspec.structs.replace(single, count=trial.found)
        text, hosts = f"{trial.found:,} instances instead of {request.count:,}", whole.explainer.explain(single).left
        whole.scheduler.keeps_consumed = True
        whole.decide(fewer)
        changes.append(Change(kind="count", text=text, hosts=hosts, request=fewer))
    empty = product.without_consumers(random=draws).decide(request)
    never = Never(could_fit=empty.is_granted, reason=empty.reason)
    return whole.explainer.explain(single, changes=changes, never=never)
