"""Rules of somebody else that raise, hang or return nonsense."""

import sys
import threading
import time
import types

import msgspec
import numpy as np
import pytest

from roost.errors import BadRequest
from roost.model.evidence.decision import Stage
from roost.model.settings.roost_settings import FilterScheduler, Scheduler, Settings
from roost.scheduler.framework.plugin import (
    Countable,
    FactsOnly,
    Fallible,
    NoOptions,
    Shareable,
    SupportsHostReasons,
    SupportsLimits,
    SupportsRequestCheck,
    implements,
)
from roost.scheduler.framework.sandbox import sandbox_filter, sandbox_weigher
from tests.support.fleets.fleets import hosts, spec
from tests.support.fleets.products import fleet, request
from tests.support.fleets.worlds import roost_on


class Odd:
    """A filter of somebody else; what it does with a host is up to the test."""

    name = nova_name = "odd"
    section = "filter_scheduler"
    options = NoOptions
    run_filter_once_per_request = run_on_rebuild = False
    aggregate_key = "odd"
    minval = maxval = None
    sign = multiplier = 1.0

    def __init__(self, options=None, *, act=None):
        if act is not None:
            self.act = act

    def act(self, rows):
        """Keep them."""
        return np.ones(len(rows), dtype=np.bool_)

    def reads(self, spec):
        """Say that a verdict holds while facts do."""
        return "facts"

    def concerns(self, spec):
        """Say yes."""
        return True

    def keep(self, hosts, spec):
        """Do what the test says."""
        return self.act(hosts.rows)

    def reason(self, spec):
        """Say nothing much."""
        return "are odd"


class OddWeigher(Odd):
    """The same for weights."""

    keep = reads = None

    def raw(self, hosts, spec):
        """Do what the test says."""
        return self.act(hosts.rows)


def guarded(act, *, limit_s=0.0, refuses="host"):
    return sandbox_filter(Odd(act=act), limit_s=limit_s, refuses=refuses)


def raising_at(*rows):
    def act(asked):
        if set(rows) & set(asked.tolist()):
            raise ValueError("no\nnumber")
        return np.ones(len(asked), dtype=np.bool_)

    return act


THREE = {"free_ram_mb": [1, 2, 3]}


def test_a_rule_that_works_is_left_alone():
    rule = guarded(lambda rows: rows > 0, limit_s=60.0)
    assert rule.keep(hosts(**THREE), spec()).tolist() == [False, True, True]
    assert (rule.fault, rule.reads(spec()), rule.reason(spec()), rule.name) == (None, "facts", "are odd", "odd")


@pytest.mark.parametrize("limit_s", [0.0, 60.0])
def test_a_rule_that_raises_for_a_host_still_judges_the_others(limit_s):
    rule = guarded(raising_at(1), limit_s=limit_s)
    assert rule.keep(hosts(**THREE), spec()).tolist() == [True, False, True]
    assert rule.fault.hosts.tolist() == [False, True, False]
    assert rule.fault.text == "odd raised ValueError: no number"


@pytest.mark.parametrize(
    ("act", "told"),
    [
        (lambda _rows: None, "odd returned None instead of one bool per host"),
        (lambda _rows: True, "odd returned True instead of one bool per host"),
        (lambda rows: ["yes"] * len(rows), "odd returned <U3 of shape (1,) instead of one bool per host"),
        (lambda _rows: np.ones(7, dtype=np.bool_), "odd returned bool of shape (7,) instead of one bool per host"),
        (lambda _rows: sys.exit(3), "odd raised SystemExit: 3"),
    ],
)
def test_a_filter_that_returns_nonsense_refuses_all(act, told):
    rule = guarded(act)
    assert not rule.keep(hosts(**THREE), spec()).any()
    assert rule.fault.hosts.all()
    assert rule.fault.text == told


def test_a_rule_that_fails_only_for_all_together_fails_for_all():
    rule = guarded(lambda rows: 1 / (3 - len(rows)) > 0 and np.ones(len(rows), dtype=np.bool_))
    assert not rule.keep(hosts(**THREE), spec()).any()
    assert rule.fault.hosts.all()


def test_a_rule_that_hangs_is_left_behind_and_ended():
    begun = threading.Event()

    def act(_rows):
        begun.set()
        while True:
            time.sleep(0.001)

    rule = guarded(act, limit_s=0.05)
    assert not rule.keep(hosts(**THREE), spec()).any()
    assert begun.is_set()
    assert rule.fault.text == "odd took more than 0.05 s"
    for thread in threading.enumerate():
        if thread.name == "rule odd":
            thread.join(60.0)
            assert not thread.is_alive()


def test_a_rule_that_cannot_be_ended_is_not_asked_again_until_it_has_ended():
    release = threading.Event()
    asked = []

    def act(rows):
        asked.append(len(rows))
        release.wait(60.0)
        return np.ones(len(rows), dtype=np.bool_)

    rule = guarded(act, limit_s=0.05)
    for _ in range(2):
        assert not rule.keep(hosts(**THREE), spec()).any()
    assert asked == [3]
    assert rule.fault.text == "odd took more than 0.05 s before, and has not ended yet"
    release.set()


def test_a_guarded_filter_can_do_what_the_filter_can():
    class Able(Odd):
        def verdict_key(self, spec):
            raise KeyError("x")

        def host_reasons(self, hosts, spec):
            return 1 / 0

        def check(self, spec):
            raise BadRequest("this hint cannot be meant")

        def limits(self, hosts, spec):
            return [{"x": 1.0}] * len(hosts)

    rule = sandbox_filter(Able(), limit_s=0.0, refuses="host")
    assert implements(rule, Fallible)
    assert [
        implements(rule, each)
        for each in (Shareable, SupportsHostReasons, SupportsRequestCheck, SupportsLimits, Countable)
    ] == [True] * 4 + [False]
    assert rule.verdict_key(spec()) != rule.verdict_key(spec())
    assert rule.host_reasons(hosts(**THREE), spec()) == ["", "", ""]
    assert rule.limits(hosts(**THREE), spec()) == [{"x": 1.0}] * 3
    with pytest.raises(BadRequest, match="cannot be meant"):
        rule.check(spec())


@pytest.mark.parametrize(
    ("act", "told"),
    [
        (lambda rows: np.full(len(rows), np.nan), "odd returned nan instead of one finite number per host"),
        (lambda rows: np.full(len(rows), np.inf), "odd returned inf instead of one finite number per host"),
        (lambda _rows: np.ones(9), "odd returned 9 numbers instead of one finite number per host"),
        (lambda rows: rows, "odd returned int64 of shape (1,) instead of one finite number per host"),
        (raising_at(0, 1, 2), "odd raised ValueError: no number"),
    ],
)
def test_a_weigher_that_fails_refuses_by_a_filter_of_its_name(act, told):
    weigher, weighable = sandbox_weigher(OddWeigher(act=act), limit_s=0.0, refuses="host")
    assert weigher.raw(hosts(**THREE), spec()).tolist() == [0.0, 0.0, 0.0]
    assert weighable.keep(hosts(**THREE), spec()).tolist() == [False] * 3
    assert (weighable.name, weighable.fault.text) == ("odd", told)


def test_a_weigher_without_a_multiplier_counts_for_nothing():
    broken = type("Broken", (OddWeigher,), {"multiplier": property(lambda _self: 1 / 0), "reads_facts_only": True})
    weigher, weighable = sandbox_weigher(broken(act=lambda rows: rows * 1.0), limit_s=0.0, refuses="host")
    assert weigher.multiplier == 0.0
    assert implements(weigher, FactsOnly)
    assert (weighable.keep(hosts(**THREE), spec()).any(), weighable.reads(spec())) == (False, "facts")


def of(monkeypatch, kind, *, refuses="request", **chosen):
    """Give a Roost of three hosts whose rules are ``compute`` and one of somebody else."""
    module = types.ModuleType("oddrules")
    module.Odd = kind
    monkeypatch.setitem(sys.modules, "oddrules", module)
    settings = Settings(
        scheduler=Scheduler(plugin_failure=refuses, plugin_timeout_s=60.0), filter_scheduler=FilterScheduler(**chosen)
    )
    product = roost_on(settings=settings)
    product.install(fleet(3, vcpus=4))
    return product


FILTERING = {"available_filters": ("nova.scheduler.filters.all_filters", "oddrules.Odd")}


def acting(act, base=Odd):
    return type("Acting", (base,), {"act": lambda _self, rows: act(rows)})


def test_a_filter_that_fails_for_a_host_refuses_the_host_or_the_request(monkeypatch):
    kind = acting(raising_at(1))
    for refuses, left in (("host", 2), ("request", 0)):
        product = of(monkeypatch, kind, refuses=refuses, enabled_filters=("compute", "odd"), **FILTERING)
        for _ in range(2):  # Of what went wrong nothing is remembered.
            decision = product.decide(request())
            assert decision.is_granted == (refuses == "host")
            assert decision.warnings == ["odd raised ValueError: no number, about host-1"]
            assert decision.stages[-1] == Stage("odd", 3, left, "are odd")
        assert decision.is_granted or decision.reason == decision.warnings[0]
        stored = product.decision(decision.uuid)
        assert (stored.warnings, stored.reason) == (decision.warnings, decision.reason)
        assert product.replay(decision.uuid).is_same


def test_a_failure_for_a_host_that_is_gone_already_is_nobodys_loss(monkeypatch):
    product = of(monkeypatch, acting(raising_at(1)), enabled_filters=("compute", "odd"), **FILTERING)
    decision = product.decide(request(ignore_hosts=("host-1",)))
    assert (decision.is_granted, decision.warnings) == (True, [])


def test_a_weigher_that_fails_refuses_the_host_or_the_request(monkeypatch):
    def weigh(rows):
        if 2 in rows.tolist():
            raise ValueError("no scale")
        return -1.0 * rows

    kind = acting(weigh, OddWeigher)
    for refuses, hosts_left in (("host", ["host-0"]), ("request", [])):
        product = of(monkeypatch, kind, refuses=refuses, weight_classes=("oddrules.Odd",))
        decision = product.decide(request())
        assert [pick.host for pick in decision.picks] == hosts_left
        assert decision.warnings == ["odd raised ValueError: no scale, about host-2"]
        stage = decision.stages[-1]
        assert (stage.rule, stage.before, stage.reason) == ("odd", 3, "cannot be weighed by odd")


def test_several_hosts_that_a_rule_fails_for_are_counted(monkeypatch):
    product = of(monkeypatch, acting(raising_at(0, 2)), enabled_filters=("odd",), **FILTERING)
    assert product.decide(request()).reason == "odd raised ValueError: no number, about host-0 and 1 more"


def test_rules_of_roost_are_not_guarded():
    product = roost_on()
    assert [rule for rule in (*product.rules.filters, *product.rules.weighers) if implements(rule, Fallible)] == []


def test_a_verdict_that_went_well_is_kept(monkeypatch):
    asked = []

    def act(rows):
        asked.append(len(rows))
        return np.ones(len(rows), dtype=np.bool_)

    product = of(monkeypatch, acting(act), enabled_filters=("odd",), **FILTERING)
    for _ in range(3):
        assert product.decide(msgspec.structs.replace(request())).is_granted
    assert asked == [3]
