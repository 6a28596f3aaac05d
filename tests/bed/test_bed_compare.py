"""Differences between clouds: choices among correct hosts and races of upstream Placement are no failures."""

from tests.bed import bed_run
from tests.bed.combinations import ALL, Combination
from tests.bed.compare import count_reasons, find_differences
from tests.bed.loads import EQUAL, FAR, FULLER, NEAR, OTHER, UNKNOWN, classify
from tests.bed.records import Outcome, Record, add_amounts, holdings_of

AMOUNTS = {"VCPU": 1, "MEMORY_MB": 64, "DISK_GB": 1}


def record(combination: str = "upstream-nova", rounds: tuple[int, ...] = (), **outcomes: Outcome) -> Record:
    """Return a record of one operation."""
    return Record(
        combination=ALL[combination],
        outcomes={"an operation": outcomes},
        durations_s={"an operation": 1.0},
        start_s=60.0,
        cpu_s={"placement": 2.0},
        rounds=rounds,
    )


def server(host: str, *, loads: dict[str, dict[str, int]] | None = None, is_free: bool = True) -> Outcome:
    """Return a running server that holds its amounts on its host."""
    holdings = holdings_of({host: AMOUNTS}, host)
    return Outcome(status="ACTIVE", host=host, holdings=holdings, loads=loads or {}, is_host_free=is_free)


def kinds(reference: Outcome, subject: Outcome, combination: str = "roost-roost") -> list[tuple[str, str]]:
    """Return the part and the kind of each difference."""
    found = find_differences(record(one=reference), record(combination, one=subject))
    return [(each.part, each.kind) for each in found]


def crowd(granted: int) -> Outcome:
    """Return the observation of a class that runs out."""
    return Outcome(facts={"room": 3, "granted": granted, "boots": 12})


def test_another_host_is_one_difference_and_no_failure():
    assert kinds(server("cmp1"), server("cmp2")) == [("host", "host")]


def test_another_host_fails_if_the_user_named_it():
    assert kinds(server("cmp1", is_free=False), server("cmp2", is_free=False)) == [("host", "other")]


def test_equal_clouds_have_no_difference():
    assert kinds(server("cmp1"), server("cmp1")) == []


def test_status_fault_and_holdings_are_compared():
    refusal = Outcome(status="ERROR", fault="No valid host was found.")
    assert kinds(server("cmp1"), refusal) == [("status", "other"), ("fault", "other"), ("holdings", "other")]


def test_absent_observation_is_a_difference():
    found = find_differences(record(one=server("cmp1")), record("roost-roost"))
    assert [(each.label, each.part, each.subject, each.kind) for each in found] == [
        ("one", "presence", "absent", "other")
    ]


def test_overcommit_of_upstream_is_meant_if_roost_grants_exactly_its_room():
    assert kinds(crowd(4), crowd(3)) == [("facts", "meant")]
    assert kinds(crowd(3), crowd(4), "upstream-roost") == [("facts", "meant")]


def test_roost_never_grants_more_or_less_than_its_room():
    assert kinds(crowd(4), crowd(2)) == [("facts", "other")]
    assert kinds(crowd(4), crowd(5)) == [("facts", "other")]
    assert kinds(crowd(3), crowd(4)) == [("facts", "other")]


def test_choices_are_counted_by_reason():
    loads = {"cmp1": AMOUNTS, "cmp2": AMOUNTS}
    found = find_differences(
        record(one=server("cmp1", loads=loads), two=server("cmp1")),
        record("roost-roost", one=server("cmp2", loads=loads), two=server("cmp2")),
    )
    assert count_reasons(found) == {EQUAL: 1, UNKNOWN: 1}


def test_loads_before_a_choice_give_its_reason():
    small, large = {"VCPU": 1, "MEMORY_MB": 64}, {"VCPU": 9, "MEMORY_MB": 1024}

    def reason(before: dict[str, dict[str, int]], now: dict[str, dict[str, int]]) -> str:
        return classify(server("cmp1", loads=before), server("cmp2", loads=now))

    assert reason({"cmp1": small, "cmp2": small}, {"cmp1": small, "cmp2": small}) == EQUAL
    assert reason({"cmp1": small, "cmp2": {"VCPU": 0}}, {"cmp1": small, "cmp2": {}}) == NEAR
    assert reason({"cmp1": large, "cmp2": small}, {"cmp1": large, "cmp2": small}) == FAR
    assert reason({"cmp1": small}, {"cmp2": small}) == OTHER
    assert reason({"cmp1": small}, {"cmp1": large, "cmp2": small}) == OTHER
    assert reason({"cmp1": large, "cmp2": large}, {"cmp1": small, "cmp2": large}) == FULLER


def test_holdings_name_no_host():
    found = holdings_of({"cmp2": {"VCPU": 1}, "cmp2-child": {"CUSTOM_MAGIC": 1}, "cmp1": {"VCPU": 2}}, "cmp2")
    assert {each.role: each.amounts for each in found} == {
        "its host": {"VCPU": 1},
        "part of its host": {"CUSTOM_MAGIC": 1},
        "another host": {"VCPU": 2},
    }
    assert add_amounts(each.amounts for each in found) == {"CUSTOM_MAGIC": 1, "VCPU": 3}


def test_only_the_rounds_of_roosts_placement_must_grant_exactly_the_room():
    rounds = (record(rounds=(41,)), record("roost-roost", rounds=(40, 39)))
    problems = bed_run.problems_of(bed_run.Results(records=rounds))
    assert problems == ["roost-roost: 39 of 80 boots were granted, and there is room for 40"]


def test_tables_show_every_cloud_difference_and_problem():
    records = (record(one=server("cmp1"), two=crowd(4)), record("roost-roost", one=server("cmp2"), two=crowd(3)))
    differences = {"roost-roost": find_differences(*records)}
    text = bed_run.show(bed_run.Results(records=records, differences=differences))
    rows = [line.split() for line in text.splitlines()]
    assert ["an", "operation", "1.0", "1.0"] in rows
    assert ["roost-roost", "2", "0", "1", "1"] in rows
    assert "meant, in roost-roost: an operation / two / facts: upstream Placement grants a unit twice" in text
    assert text.endswith("0 problems")


def test_combinations_count_the_consumers_of_the_queue():
    both = Combination(placement="roost", scheduler="both", roosts=2)
    assert [each.scheduler_count for each in (*ALL.values(), both)] == [1, 1, 1, 1, 3]
