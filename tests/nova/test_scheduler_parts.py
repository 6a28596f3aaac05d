"""Two ``roost nova-scheduler`` processes with one PostgreSQL database and one queue divide the fleet."""

import uuid
from contextlib import ExitStack, closing

import pytest

from roost.app import open_reader
from tests.nova.nova_clouds import NovaCloud, new_database, new_uuid
from tests.support.wait import wait_until

pytestmark = pytest.mark.long

HOSTS, CALLS, BATCH = 16, 64, 8
_EVER = 100_000  # more than all decisions of the test
LARGE = {"VCPU": 1000, "MEMORY_MB": 65536, "DISK_GB": 100}


@pytest.fixture
def clouds(shared_broker, postgres_url, tmp_path):
    """Yield the views of two controllers on one cloud, each with its scheduler."""
    database = new_database(f"sqlite:///{tmp_path / 'api'}")
    cell = database.add_cell(f"sqlite:///{tmp_path / 'cell'}")
    broker = shared_broker.add_virtual_host(f"nova-{uuid.uuid4().hex[:8]}")
    with ExitStack() as stack:
        stack.callback(database.close)
        found = []
        for name in ("one", "two"):
            (tmp_path / name).mkdir()
            cloud = NovaCloud(tmp_path / name, broker, database, options={"DEFAULT": {"host": name}})
            stack.callback(cloud.caller.close)
            stack.enter_context(cloud.served(database=postgres_url))
            found.append(cloud)
        cloud.nodes = {name: cloud.add_host(cell, name, waits=False, totals=LARGE) for name in map(str, range(HOSTS))}
        for each in found:
            each.wait_for_hosts(*cloud.nodes)
        yield found


def decide(cloud, url, count):
    """Send calls at once; return the decision of each instance, by the uuid of the instance."""
    calls = {(number := new_uuid()): cloud.send(number, alternates=False) for _ in range(count)}
    replies = [cloud.reply(call) for call in calls.values()]
    assert [reply["failure"] for reply in replies] == [None] * count
    with closing(open_reader(None, None, environ={}, database=url)) as product:
        # The numbers of decisions rise within a process only, so the newest may be anywhere.
        found = {each.picks[0].instance_uuid: each for each in product.decisions(newest=_EVER) if each.picks}
    return {number: found[number] for number in calls}


def test_two_schedulers_of_one_queue_grant_each_call_within_their_own_parts(clouds, postgres_url):
    _, cloud = clouds

    def both_know_the_parts():
        parts = [decision.part for decision in decide(cloud, postgres_url, BATCH).values()]
        return None not in parts and len({part.own for part in parts}) == 2

    # A process has a part from its first decision. Others know it at their next heartbeats.
    wait_until(both_know_the_parts)
    decisions = decide(cloud, postgres_url, CALLS)
    assert {decision.outcome for decision in decisions.values()} == {"granted"}
    assert all(len(decision.part.processes) == 2 and decision.part.is_within for decision in decisions.values())
    chosen = {}
    for number, decision in decisions.items():
        host = decision.picks[0].host
        chosen.setdefault(decision.part.own, set()).add(host)
        assert list(cloud.allocations(number)) == [cloud.nodes[host]]
    one, other = chosen.values()
    assert one.isdisjoint(other)
