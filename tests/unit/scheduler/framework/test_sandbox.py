"""Third-party rules that raise, hang or return malformed results."""

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
    """A third-party filter; each test sets its behavior."""

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
        """Accept every host."""
        return np.ones(len(rows), dtype=np.bool_)

    def reads(self, spec):
        """Return that verdicts depend on facts alone."""
        return "facts"

    def concerns(self, spec):
        """Return True."""
        return True

    def keep(self, hosts, spec):
        """Return the verdicts of the test."""
        return self.act(hosts.rows)

    def reason(self, spec):
        """Return a fixed reason."""
        return "are odd"


class OddWeigher(Odd):
    """A third-party weigher; each test sets its behavior."""

    keep = reads = None

    def raw(self, hosts, spec):
        """Return the weights of the test."""
        return self.act(hosts.rows)


def sandbox(act, *, limit_s=0.0, refuses="host"):
    return sandbox_filter(Odd(act=act), limit_s=limit_s, refuses=refuses)


def fail_at(*rows):
    def act(checked_rows):
        if set(rows) & set(checked_rows.tolist()):
            raise ValueError("no\nnumber")
        return np.ones(len(checked_rows), dtype=np.bool_)

    return act


THREE = {"free_ram_mb": [1, 2, 3]}


def test_sandbox_does_not_change_a_working_rule():
    rule = sandbox(lambda rows: rows > 0, limit_s=60.0)
    assert rule.keep(hosts(**THREE), spec()).tolist() == [False, True, True]
    assert (rule.fault, rule.reads(spec()), rule.reason(spec()), rule.name) == (None, "facts", "are odd", "odd")


@pytest.mark.parametrize("limit_s", [0.0, 60.0])
def test_exception_for_one_host_refuses_only_that_host(limit_s):
    rule = sandbox(fail_at(1), limit_s=limit_s)
    assert rule.keep(hosts(**THREE), spec()).tolist() == [True, False, True]
    assert rule.fault.hosts.tolist() == [False, True, False]
    assert rule.fault.text == "odd raised ValueError: no number"


@pytest.mark.parametrize(
    ("act", "text"),
    [
        (lambda _rows: None, "odd returned None instead of one bool per host"),
        (lambda _rows: True, "odd returned True instead of one bool per host"),
        (lambda rows: ["yes"] * len(rows), "odd returned <U3 of shape (1,) instead of one bool per host"),
        (lambda _rows: np.ones(7, dtype=np.bool_), "odd returned bool of shape (7,) instead of one bool per host"),
        (lambda _rows: sys.exit(3), "odd raised SystemExit: 3"),
    ],
)
def test_filter_with_a_malformed_result_refuses_all_hosts(act, text):
    rule = sandbox(act)
    assert not rule.keep(hosts(**THREE), spec()).any()
    assert rule.fault.hosts.all()
    assert rule.fault.text == text


def test_rule_that_fails_only_for_all_hosts_refuses_all_hosts():
    rule = sandbox(lambda rows: 1 / (3 - len(rows)) > 0 and np.ones(len(rows), dtype=np.bool_))
    assert not rule.keep(hosts(**THREE), spec()).any()
    assert rule.fault.hosts.all()


def test_hanging_rule_times_out_and_its_thread_is_ended():
    start = threading.Event()

    def act(_rows):
        start.set()
        while True:
            time.sleep(0.001)

    rule = sandbox(act, limit_s=0.05)
    assert not rule.keep(hosts(**THREE), spec()).any()
    assert start.is_set()
    assert rule.fault.text == "odd took more than 0.05 s"
    for thread in threading.enumerate():
        if thread.name == "rule odd":
            thread.join(60.0)
            assert not thread.is_alive()


def test_rule_that_cannot_be_ended_is_not_called_again():
    release = threading.Event()
    row_counts = []

    def act(rows):
        row_counts.append(len(rows))
        release.wait(60.0)
        return np.ones(len(rows), dtype=np.bool_)

    rule = sandbox(act, limit_s=0.05)
    for _ in range(2):
        assert not rule.keep(hosts(**THREE), spec()).any()
    assert row_counts == [3]
    assert rule.fault.text == "odd took more than 0.05 s before, and has not ended yet"
    release.set()


def test_sandboxed_filter_keeps_the_capabilities_of_the_filter():
    class CapableFilter(Odd):
        def verdict_key(self, spec):
            raise KeyError("x")

        def host_reasons(self, hosts, spec):
            return 1 / 0

        def check(self, spec):
            raise BadRequest("this hint cannot be meant")

        def limits(self, hosts, spec):
            return [{"x": 1.0}] * len(hosts)

    rule = sandbox_filter(CapableFilter(), limit_s=0.0, refuses="host")
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
    ("act", "text"),
    [
        (lambda rows: np.full(len(rows), np.nan), "odd returned nan instead of one finite number per host"),
        (lambda rows: np.full(len(rows), np.inf), "odd returned inf instead of one finite number per host"),
        (lambda _rows: np.ones(9), "odd returned 9 numbers instead of one finite number per host"),
        (lambda rows: rows, "odd returned int64 of shape (1,) instead of one finite number per host"),
        (fail_at(0, 1, 2), "odd raised ValueError: no number"),
    ],
)
def test_failed_weigher_refuses_through_a_filter_of_its_name(act, text):
    weigher, weighable = sandbox_weigher(OddWeigher(act=act), limit_s=0.0, refuses="host")
    assert weigher.raw(hosts(**THREE), spec()).tolist() == [0.0, 0.0, 0.0]
    assert weighable.keep(hosts(**THREE), spec()).tolist() == [False] * 3
    assert (weighable.name, weighable.fault.text) == ("odd", text)


def test_weigher_with_a_broken_multiplier_refuses_all_hosts():
    broken = type("Broken", (OddWeigher,), {"multiplier": property(lambda _self: 1 / 0), "reads_facts_only": True})
    weigher, weighable = sandbox_weigher(broken(act=lambda rows: rows * 1.0), limit_s=0.0, refuses="host")
    assert weigher.multiplier == 0.0
    assert implements(weigher, FactsOnly)
    assert (weighable.keep(hosts(**THREE), spec()).any(), weighable.reads(spec())) == (False, "facts")


def roost_with_rule(monkeypatch, kind, *, refuses="request", **options):
    """Return a Roost of three hosts with a third-party rule."""
    module = types.ModuleType("oddrules")
    module.Odd = kind
    monkeypatch.setitem(sys.modules, "oddrules", module)
    settings = Settings(
        scheduler=Scheduler(plugin_failure=refuses, plugin_timeout_s=60.0), filter_scheduler=FilterScheduler(**options)
    )
    product = roost_on(settings=settings)
    product.install(fleet(3, vcpus=4))
    return product


FILTER_SETTINGS = {"available_filters": ("nova.scheduler.filters.all_filters", "oddrules.Odd")}


def rule_class(act, base=Odd):
    return type("OddRule", (base,), {"act": lambda _self, rows: act(rows)})


def test_failed_filter_refuses_the_host_or_the_request(monkeypatch):
    kind = rule_class(fail_at(1))
    for refuses, host_count in (("host", 2), ("request", 0)):
        product = roost_with_rule(
            monkeypatch, kind, refuses=refuses, enabled_filters=("compute", "odd"), **FILTER_SETTINGS
        )
        for _ in range(2):  # A failed verdict is not cached.
            decision = product.decide(request())
            assert decision.is_granted == (refuses == "host")
            assert decision.warnings == ["odd raised ValueError: no number, about host-1"]
            assert decision.stages[-1] == Stage("odd", 3, host_count, "are odd")
        assert decision.is_granted or decision.reason == decision.warnings[0]
        stored_decision = product.decision(decision.uuid)
        assert (stored_decision.warnings, stored_decision.reason) == (decision.warnings, decision.reason)
        assert product.replay(decision.uuid).is_same


def test_failure_for_an_already_refused_host_has_no_effect(monkeypatch):
    product = roost_with_rule(
        monkeypatch, rule_class(fail_at(1)), enabled_filters=("compute", "odd"), **FILTER_SETTINGS
    )
    decision = product.decide(request(ignore_hosts=("host-1",)))
    assert (decision.is_granted, decision.warnings) == (True, [])


def test_failed_weigher_refuses_the_host_or_the_request(monkeypatch):
    def weigh(rows):
        if 2 in rows.tolist():
            raise ValueError("no scale")
        return -1.0 * rows

    kind = rule_class(weigh, OddWeigher)
    for refuses, names in (("host", ["host-0"]), ("request", [])):
        product = roost_with_rule(monkeypatch, kind, refuses=refuses, weight_classes=("oddrules.Odd",))
        decision = product.decide(request())
        assert [pick.host for pick in decision.picks] == names
        assert decision.warnings == ["odd raised ValueError: no scale, about host-2"]
        stage = decision.stages[-1]
        assert (stage.rule, stage.before, stage.reason) == ("odd", 3, "cannot be weighed by odd")


def test_failure_text_names_one_host_and_counts_the_others(monkeypatch):
    product = roost_with_rule(monkeypatch, rule_class(fail_at(0, 2)), enabled_filters=("odd",), **FILTER_SETTINGS)
    assert product.decide(request()).reason == "odd raised ValueError: no number, about host-0 and 1 more"


def test_builtin_rules_are_not_sandboxed():
    product = roost_on()
    assert [rule for rule in (*product.rules.filters, *product.rules.weighers) if implements(rule, Fallible)] == []


def test_successful_verdict_is_cached(monkeypatch):
    row_counts = []

    def act(rows):
        row_counts.append(len(rows))
        return np.ones(len(rows), dtype=np.bool_)

    product = roost_with_rule(monkeypatch, rule_class(act), enabled_filters=("odd",), **FILTER_SETTINGS)
    for _ in range(3):
        assert product.decide(msgspec.structs.replace(request())).is_granted
    assert row_counts == [3]
