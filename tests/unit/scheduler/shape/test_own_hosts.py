import pytest

from roost.api.v1.schemas.decisions import show_why
from roost.cli.text.why_text import to_text
from roost.model.evidence.fleet_part import FleetPart, choose_part
from roost.model.request import Destination
from roost.scheduler.shape.own_hosts import OwnMask, find_part
from tests.support.fleets.worlds import group, hosts, merge_fleets, roost_with, small_request

PART = choose_part(5, frozenset({5, 6, 7}))
HOSTS = 6


@pytest.fixture
def roost():
    opened = roost_with(merge_fleets(hosts(HOSTS), group("soft", "soft-affinity"), group("hard", "anti-affinity")))
    opened._current.part = PART
    return opened


def own_names(roost):
    mask = OwnMask().find(roost.state, PART)
    return [name for name, is_own in zip(roost.state.hosts.names, mask, strict=True) if is_own]


def lines_of(roost, decision):
    return to_text(show_why(roost.why(decision.uuid))).splitlines()


def test_mask_grows_with_the_fleet(roost):
    mask = OwnMask()
    before = mask.find(roost.state, PART).tolist()
    assert 0 < sum(before) < HOSTS
    more = hosts(12)
    roost.install(type(more)(providers=more.providers[HOSTS:], hosts=more.hosts[HOSTS:]))
    after = mask.find(roost.state, PART).tolist()
    assert after[:HOSTS] == before
    assert after == OwnMask().find(roost.state, PART).tolist()


@pytest.mark.parametrize(
    ("request_", "has_part"),
    [
        (small_request(), True),
        (small_request(count=3), True),
        (small_request(in_group="hard"), True),
        (small_request(in_group="soft"), False),
        (small_request(force_hosts=("h1",)), False),
        (small_request(force_nodes=("h1",)), False),
        (small_request(destination=Destination(host="h1")), False),
        (small_request(destination=Destination(cell="cell", allow_cross_cell_move=True)), False),
        (small_request(destination=Destination(cell="cell")), True),
    ],
)
def test_requests_without_a_choice_or_with_a_comparison_need_the_whole_fleet(roost, request_, has_part):
    assert (find_part(request_, roost.state, PART) is not None) == has_part
    assert find_part(request_, roost.state, None) is None


def test_a_single_process_has_no_part():
    assert choose_part(5, frozenset({5})) is None
    assert choose_part(5, frozenset({6, 7})) is None
    assert choose_part(5, frozenset({7, 5})) == FleetPart(5, (5, 7))


def test_decision_names_its_part(roost):
    decision = roost.decide(small_request())
    assert decision.picks[0].host in own_names(roost)
    assert {pick.host for picks in decision.alternates.values() for pick in picks} < set(own_names(roost))
    lines = lines_of(roost, decision)
    assert "chosen within the part of the deciding process, one of 3 parts of the fleet" in lines
    assert any(line.startswith("own_hosts") and "are in the parts of 2 other processes" in line for line in lines)


def test_request_without_an_own_host_gets_another(roost):
    own = tuple(own_names(roost))
    decision = roost.decide(small_request(ignore_hosts=own))
    assert decision.picks[0].host not in own
    assert [stage.rule for stage in decision.stages].count("own_hosts") == 0
    text = "no host fits within the part of the deciding process, one of 3 parts of the fleet: chosen elsewhere"
    assert text in lines_of(roost, decision)


def test_instances_that_do_not_fit_together_use_the_whole_fleet(roost):
    decision = roost.decide(small_request(count=HOSTS, vcpus=8))
    assert {pick.host for pick in decision.picks} == {f"h{number}" for number in range(HOSTS)}
    assert decision.part == FleetPart(5, (5, 6, 7), is_within=False)
    text = (
        "not all instances fit within the part of the deciding process, one of 3 parts of the fleet: chosen elsewhere"
    )
    lines = lines_of(roost, decision)
    assert text in lines
    assert not any(line.startswith("own_hosts") for line in lines)
    refused = roost.decide(small_request())
    assert not refused.is_granted
    text = "no host fits within the part of the deciding process, one of 3 parts of the fleet: none elsewhere"
    assert text in lines_of(roost, refused)


def test_dry_run_equals_the_decision(roost):
    for request_ in (small_request(), small_request(count=2), small_request(ignore_hosts=tuple(own_names(roost)))):
        dry = roost.decide(request_, dry_run=True)
        real = roost.decide(request_)
        assert [pick.host for pick in dry.picks] == [pick.host for pick in real.picks]
        assert dry.part == real.part
        assert dry.stages == real.stages


def test_hosts_for_fewer_instances_are_counted_in_the_whole_fleet(roost):
    refused = roost.decide(small_request(count=HOSTS + 1, vcpus=8))
    (fewer,) = (change for change in roost.why(refused.uuid).explanation.changes if change.kind == "count")
    assert (fewer.text, fewer.hosts) == (f"{HOSTS} instances instead of {HOSTS + 1}", HOSTS)
