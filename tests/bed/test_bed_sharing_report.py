"""The report of schedulers that share the queue: lost and doubled servers, and groups that Roost breaks."""

import pytest

from tests.bed.roost_servers import count_answers
from tests.bed.sharing_report import Policy, SharedServer, SharingReport, summarize


def server(name: str = "one", **fields: object) -> SharedServer:
    """Return a server that Roost placed on cmp1."""
    usual = {"status": "ACTIVE", "host": "cmp1", "fault": "", "claimed_hosts": ("cmp1",), "decider": "roost"}
    return SharedServer(name=name, **(usual | fields))


def report(*servers: SharedServer, policy: Policy = "anti-affinity", orphans: tuple[str, ...] = ()) -> SharingReport:
    """Return the report on servers; group g has the policy."""
    return summarize([*servers], {"g": policy}, orphans=[*orphans], calls={"roost": 1})


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"status": "BUILD after 120 s"}, "one is lost: BUILD after 120 s"),
        ({"status": "ERROR", "claimed_hosts": ()}, "one is in ERROR without a fault"),
        ({"claimed_hosts": ("cmp1", "cmp2")}, "one is on cmp1, and has allocations on cmp1, cmp2"),
        ({"claimed_hosts": ()}, "one is on cmp1, and has allocations on none"),
        ({"status": "ERROR", "fault": "No valid host", "host": ""}, "one is in ERROR, and has allocations on cmp1"),
    ],
)
def test_lost_and_doubled_servers_are_problems(fields, problem):
    assert report(server(**fields)).problems == (problem,)


def test_running_and_refused_servers_are_no_problem():
    refusal = server("two", status="ERROR", fault="No valid host", host="", claimed_hosts=(), decider="")
    found = report(server(), refusal)
    assert found.problems == ()
    assert (found.statuses, found.faults) == ({"ACTIVE": 1, "ERROR": 1}, {"No valid host": 1})


def test_only_pairs_that_roost_placed_break_a_group():
    both = report(server("one", group="g"), server("two", group="g"))
    assert both.problems == ("one and two break the policy anti-affinity: cmp1, cmp1",)
    mixed = report(server("one", group="g"), server("two", group="g", decider="nova"))
    assert (mixed.problems, mixed.pairs) == ((), {"nova and roost": 1})


def test_members_of_an_affinity_group_share_a_host():
    apart = server("two", group="g", host="cmp2", claimed_hosts=("cmp2",))
    assert len(report(server("one", group="g"), apart, policy="affinity").problems) == 1
    assert report(server("one", group="g"), server("two", group="g"), policy="affinity").problems == ()


def test_allocations_without_a_server_and_idle_schedulers_are_problems():
    assert report(orphans=("a-uuid",)).problems == ("consumer a-uuid is no server and has allocations",)
    assert summarize([], {}, orphans=[], calls={"roost-2": 0}).problems == ("roost-2 answered no call",)


def test_refusals_of_the_api_are_problems():
    found = summarize([], {}, orphans=[], calls={}, refusals={"one": "500 an error"})
    assert found.problems == ("one was refused: 500 an error",)


def test_table_has_all_numbers():
    text = report(server("one", group="g"), server("two", group="g", decider="nova")).table()
    rows = [line.split() for line in text.splitlines()]
    assert ["servers", "ACTIVE", "2"] in rows
    assert ["pairs", "against", "a", "policy", "nova", "and", "roost", "1"] in rows


def test_answers_are_read_from_metrics():
    metrics = (
        'roost_nova_replies_total{outcome="answered"} 12\n'
        'roost_nova_replies_total{outcome="failed"} 3\nroost_nova_calls_open 1\n'
    )
    assert count_answers(metrics) == 12
