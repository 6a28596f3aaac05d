import json

import pytest

from roost.errors import BadRequest
from roost.model.flavor import Flavor
from roost.model.host import HostFacts
from roost.model.request import Request
from roost.scheduler.filters.json import Json
from roost.scheduler.framework.plugin import NoOptions
from tests.support.fleets.fleets import fleet, host_view, spec
from tests.support.fleets.worlds import chosen_hosts, host, merge_fleets, roost_with, settings_of

RULE = Json(NoOptions())


@pytest.fixture
def state():
    state = fleet(
        HostFacts(hypervisor_type="QEMU", stats={"rank": "1"}, cpu_info={"topology": {"cores": 8}}),
        HostFacts(hypervisor_type="xen", stats={"rank": "2"}),
        HostFacts(),
    )
    state.hosts.columns["free_ram_mb"].data[:3] = [4096, 1024, 0]
    return state


@pytest.mark.shows("S025", "S079", "S080")
@pytest.mark.parametrize(
    ("query", "verdicts"),
    [
        ([">=", "$free_ram_mb", 1024], [True, True, False]),
        (["=", "$hypervisor_type", "QEMU"], [True, False, False]),
        (["and", [">=", "$free_ram_mb", 1024], ["=", "$hypervisor_type", "QEMU"]], [True, False, False]),
        (["or", ["=", "$stats.rank", "2"], ["in", "$host", "host-3", "host-4"]], [False, True, True]),
        (["not", ["=", "$hypervisor_type", "QEMU"]], [False, True, True]),
        (["<", 0, "$free_ram_mb", 5000], [True, True, False]),
        (["<=", "$free_ram_mb", 1024], [False, True, True]),
        ([">", "$cpu_info.topology.cores", 4], [True, False, False]),
        # A variable that the host lacks is dropped, and the next operand takes its place.
        ([">", "$cpu_info.topology.cores", 4, 1], [True, True, True]),
        (["=", "$nobody"], [False, False, False]),
        (["and"], [True, True, True]),
        (["or"], [False, False, False]),
        (["not"], [False, False, False]),
        (["not", ["not", True]], [False, False, False]),
        (["and", ["not", True]], [True, True, True]),
        (["and", []], [True, True, True]),
        ([], [True, True, True]),
        ({}, [True, True, True]),
    ],
)
def test_query_is_evaluated_for_each_host(state, query, verdicts):
    request = spec(hints={"query": json.dumps(query)})
    RULE.check(request)
    assert RULE.concerns(request)
    assert RULE.keep(host_view(state), request).tolist() == verdicts
    assert RULE.keep(host_view(state, [2, 0]), request).tolist() == [verdicts[2], verdicts[0]]
    assert RULE.keep(host_view(state, []), request).tolist() == []
    assert RULE.warnings(host_view(state), request) == []


@pytest.mark.shows("S081")
def test_query_reads_free_memory_and_disk(state):
    state.hosts.columns["free_disk_mb"].data[:3] = [200 * 1024, 200 * 1024 - 1, 999 * 1024]
    query = ["and", [">=", "$free_ram_mb", 1024], [">=", "$free_disk_mb", 200 * 1024]]
    assert RULE.keep(host_view(state), spec(hints={"query": json.dumps(query)})).tolist() == [True, False, False]


def test_a_number_is_not_compared_with_text(state):
    request = spec(hints={"query": '["not", ["<", "$hypervisor_type", 3]]'})
    assert RULE.keep(host_view(state), request).tolist() == [False, False, True]
    (warning,) = RULE.warnings(host_view(state), request)
    assert '\'["not", ["<", "$hypervisor_type", 3]]\' compares values without an order' in warning


def test_query_is_repeated_per_claim_only_if_it_reads_use():
    assert RULE.reads(spec(hints={"query": '["=", "$hypervisor_type", "QEMU"]'})) == "facts"
    assert RULE.reads(spec(hints={"query": '["not", ["<", "$free_ram_mb", 1]]'})) == "use"
    assert not RULE.concerns(spec(hints={"other": "[]"}))


def test_host_reason_lists_the_values_that_the_query_reads(state):
    request = spec(hints={"query": '["and", [">", "$free_ram_mb", 4096], ["=", "$hypervisor_type", "QEMU"]]'})
    assert RULE.host_reasons(host_view(state, [0, 2]), request) == [
        "has free_ram_mb 4,096, hypervisor_type QEMU",
        "has free_ram_mb 0, hypervisor_type unknown",
    ]
    assert RULE.reason(spec(hints={"query": '["or"]'})) == 'do not match the hint query: ["or"]'


NO_JSON = 'is not JSON, such as ["and", [">=", "$free_ram_mb", 1024], [">=", "$free_disk_mb", 204800]]'


@pytest.mark.parametrize(
    ("query", "problem"),
    [
        ("{", NO_JSON),
        ("[NaN]", NO_JSON),
        ('["=", "$a", Infinity]', NO_JSON),
        ('"and"', "must be a list that begins with an operator"),
        ('{"a": 1}', "must be a list that begins with an operator"),
        ('["is", 1]', 'has "is" instead of an operator; operators are =, <, >, <=, >=, in, not, or, and'),
        ('["and", [["and"]]]', 'has ["and"] instead of an operator; operators are =, <, >, <=, >=, in, not, or, and'),
        ('["not", ' * 101 + "true" + "]" * 101, "is nested more than 100 deep"),
        ("[" * 100_000, NO_JSON),
    ],
)
def test_malformed_query_is_an_error_with_the_text_of_the_hint(query, problem):
    roost = roost_with(host("a"), settings=settings_of(enabled_filters=["JsonFilter"]))
    request = Request(flavor=Flavor(name="small", vcpus=1, memory_mb=1), hints={"query": [query]})
    with pytest.raises(BadRequest) as error:
        roost.decide(request)
    assert str(error.value) == f"the hint query={query[:200]!r} {problem}"
    assert roost.decide(Request(flavor=request.flavor)).is_granted


@pytest.mark.shows("S005", "S007", "S169")
def test_query_sees_the_usage_of_earlier_instances():
    roost = roost_with(
        merge_fleets(host("a", VCPU=8, MEMORY_MB=32), host("b", VCPU=8, MEMORY_MB=16)),
        settings=settings_of(enabled_filters=["JsonFilter"]),
    )
    flavor = Flavor(name="small", vcpus=1, memory_mb=8)
    request = Request(flavor=flavor, count=3, hints={"query": '[">", "$free_ram_mb", 16]'})
    decision = roost.decide(request)
    assert not decision.is_granted
    assert decision.found == 2
    two = Request(flavor=flavor, count=2, hints={"query": '[">", "$free_ram_mb", 16]'})
    assert chosen_hosts(roost.decide(two)) == ["a", "a"]
