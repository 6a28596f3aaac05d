"""The filters and weighers of the reference and of Roost give equal results on the same pairs."""

import logging

import pytest

from bench.peers import rules
from roost.scheduler.filters.io_ops import IoOps
from tests.differential.scheduler import nova, plugins
from tests.differential.scheduler.compare import Duel, Tally, shorten, story
from tests.differential.scheduler.differences import DIFFERENCES
from tests.differential.scheduler.pairs import pair, whole
from tests.differential.scheduler.subject import FILTERS, WEIGHERS
from tests.support.missing_programs import skip_test
from tests.support.servers.plugin_site import OSLO, run_roost, write_files

SEEDS = range(400)
PLUG_IN_SEEDS = range(100)
SOAK_SEEDS = range(10_000, 15_600)
SOAK_PAIRS_MIN = 5_000
STORIES_MAX = 5


@pytest.fixture(scope="module")
def reference():
    """Yield the reference of this test file."""
    if nova.python() is None:
        skip_test(nova.HOW_TO_INSTALL)
    # Host states log a warning for each invalid value, and there are many.
    logging.getLogger("roost").setLevel(logging.ERROR)
    with nova.Nova() as running:
        yield running
    logging.getLogger("roost").setLevel(logging.NOTSET)


def run(duel: Duel, seeds: range) -> Tally:
    """Compare the pairs of some seeds; fail on unintended differences, with the smallest pair of each."""
    tally, lines, reported = Tally(), [], set()
    for seed in seeds:
        faults, compared = duel.compare(pair(seed))
        tally.add(compared)
        for fault in faults:
            if fault.kind not in reported:
                reported.add(fault.kind)
                lines.append(story(duel, seed, fault, may_shorten=len(reported) <= STORIES_MAX))
    assert not lines, "\n".join(["differences that are not explained:", *lines])
    print(f"seeds {seeds.start} to {seeds.stop - 1}\n{tally.text()}")
    return tally


def assert_coverage(tally: Tally, duel: Duel) -> None:
    """Assert that every filter accepted and refused hosts, and that every weigher distinguished hosts."""
    never_refuse = {"AllHostsFilter"}
    assert [name for name in duel.filters if not tally.kept[name]] == []
    assert {name for name in duel.filters if not tally.dropped[name]} == never_refuse
    assert [name for name in duel.weighers if not tally.apart[name]] == []


@pytest.mark.differential
def test_filters_and_weighers_match_the_reference(reference):
    duel = Duel(reference)
    assert_coverage(run(duel, SEEDS), duel)


@pytest.mark.differential
@pytest.mark.parametrize("name", nova.FILTERS + nova.WEIGHERS)
def test_rule_has_the_same_run_flags_and_weight_bounds(reference, name):
    rule = FILTERS.get(name) or WEIGHERS.get(name)
    if rule is None:
        pytest.skip(f"Roost has no equivalent of {name}")
    if name in FILTERS:
        assert reference.filters[name] == [rule.run_filter_once_per_request, rule.run_on_rebuild]
    else:
        assert reference.weighers[name] == [rule.minval, rule.maxval]


@pytest.mark.differential
def test_reference_has_exactly_the_compared_rules(reference):
    assert (sorted(reference.filters), sorted(reference.weighers)) == (sorted(nova.FILTERS), sorted(nova.WEIGHERS))


@pytest.mark.differential
def test_reference_rules_give_equal_results_as_plug_ins_of_roost(reference):
    filters, weighers = sorted(reference.filters), sorted(reference.weighers)
    found, compared = [], 0
    with plugins.NovaPlugins() as ours:
        assert set(ours.kinds) == {*filters, *weighers}
        for seed in PLUG_IN_SEEDS:
            table = whole(pair(seed))
            theirs = reference.ask(table, filters=filters, weighers=weighers)
            if "refused" not in theirs:
                compared += 1
                differences = plugins.differences(theirs, ours.ask(table, filters=filters, weighers=weighers))
                found += [f"seed {seed}: {each}" for each in differences]
    assert found == []
    assert compared > len(PLUG_IN_SEEDS) / 2
    print(f"{compared} pairs, {len(ours.kinds)} classes of {len(ours.modules)} modules: {', '.join(ours.modules)}")


@pytest.mark.differential
@pytest.mark.usefixtures("reference")
@pytest.mark.parametrize("hidden", [("nova", *OSLO, "netaddr"), ("nova",)], ids=["alone", "with the libraries of oslo"])
def test_copies_of_reference_modules_work_as_plug_ins_without_nova(tmp_path, hidden):
    plugins.copy_modules(str(tmp_path))
    lines = [f"available_filters = site_rules.rules.{name}" for name in nova.FILTERS]
    weighers = ", ".join(f"site_rules.rules.{name}" for name in nova.WEIGHERS)
    settings = [*lines, f"enabled_filters = {', '.join(nova.FILTERS)}", f"weight_classes = {weighers}"]
    write_files(
        tmp_path,
        {
            "site_rules/rules.py": GATHER,
            "nova.conf": "[filter_scheduler]\n" + "\n".join(settings) + "\n",
            "fleet.json": '{"hosts": [{"host": "a"}, {"host": "b", "service": {"disabled": true}}, {"host": "c"}]}',
            "request.json": '{"flavor": {"name": "f", "vcpus": 1, "memory_mb": 1}}',
        },
    )
    words = ("--fleet", "fleet.json", "--request", "request.json", "--nova-conf", "nova.conf")
    result = run_roost(tmp_path, "decide", *words, hidden=hidden)
    assert "ComputeFilter                          3 ->       2" in result.stdout, result.stderr
    assert "granted: " in result.stdout, result.stdout
    assert [name for name in nova.FILTERS if f"  {name} " not in result.stdout] == []


# A module with all classes of the copies.
GATHER = """
import importlib, pkgutil
from site_rules import filters, weights

for package in (filters, weights):
    for module in pkgutil.iter_modules(package.__path__):
        found = vars(importlib.import_module(f"{package.__name__}.{module.name}"))
        globals().update({name: each for name, each in found.items() if isinstance(each, type)})
"""


class OneTooMany(IoOps):
    """The same filter with a planted fault: it accepts one operation more."""

    def keep(self, hosts, spec):
        """Also accept hosts at their limit."""
        return hosts.column(self.column) <= self.host_limits(hosts)


@pytest.mark.differential
def test_planted_fault_is_found_and_shortened_to_a_small_pair(reference, monkeypatch):
    monkeypatch.setitem(FILTERS, "IoOpsFilter", OneTooMany)
    duel = Duel(reference)
    table = {"hosts": [{"num_io_ops": 7}, {"num_io_ops": 8, "stats": {"rank": "3"}}], "enabled": ["ComputeFilter"]}
    faults, _ = duel.compare(table)
    assert {(fault.rule, fault.what, fault.at, fault.theirs, fault.ours) for fault in faults} == {
        ("IoOpsFilter", "passes", 1, False, True)
    }
    assert shorten(duel, table, faults[0]) == {"hosts": [{"num_io_ops": 8}]}


@pytest.mark.differential
@pytest.mark.usefixtures("reference")
def test_benchmark_measures_both_over_the_same_hosts():
    lines = rules.lines(8, (1, 1), rounds=1)
    assert [line.row.split(" (")[0] for line in lines] == ["default filters", "all filters"]
    assert all(line.theirs_ms > 0 and line.ours_ms > 0 for line in lines)


@pytest.mark.soak
def test_filters_and_weighers_match_the_reference_on_many_pairs(reference):
    duel = Duel(reference)
    tally = run(duel, SOAK_SEEDS)
    assert_coverage(tally, duel)
    assert tally.pairs >= SOAK_PAIRS_MIN
    # Each intended difference must occur.
    assert set(tally.intended) == {each.name for each in DIFFERENCES if each.rules & set(duel.filters)}
