"""Real processes on one PostgreSQL divide the fleet, and take over the part of a killed process."""

import sys
from contextlib import ExitStack
from pathlib import Path

import msgspec
import psycopg
import pytest

from roost.app import open_roost
from roost.model.evidence.decision import Decision
from tests.support.fleets.products import fleet, kill, request, settings_for, worker
from tests.support.wait import wait_until

pytestmark = pytest.mark.long

HOSTS = 24  # The division is random: with fewer hosts, a process may have none.


def serve(config: str) -> None:
    """Answer each line with a decision; a line "dry" claims nothing."""
    with open_roost(Path(config)) as product:
        for line in sys.stdin:
            decision = product.decide(request(), dry_run=line == "dry\n")
            print(msgspec.json.encode(decision).decode(), flush=True)


def ask(child, line="decide") -> Decision:
    child.stdin.write(f"{line}\n")
    return msgspec.json.decode(child.stdout.readline(), type=Decision)


def part_of(child):
    return ask(child, "dry").part


def test_two_processes_divide_the_fleet_and_one_takes_over(postgres_url, tmp_path):
    config = settings_for(postgres_url, tmp_path)
    with open_roost(config) as product:
        product.install(fleet(HOSTS, vcpus=64))
    with ExitStack() as stack:
        children = [worker("tests.contract.test_fleet_parts:serve", str(config)) for _ in range(2)]
        for child in children:
            stack.callback(kill, child)
        # A process has a part from its first decision. Others know it at their next heartbeats.
        assert [ask(child).part for child in children] == [None, None]
        for child in children:
            wait_until(lambda child=child: part_of(child))
        decisions = [[ask(child) for _ in range(HOSTS)] for child in children]
        assert all(decision.part.is_within for each in decisions for decision in each)
        one, other = ({decision.picks[0].host for decision in each} for each in decisions)
        # An empty host comes first, so each process uses all hosts of its part.
        assert one | other == {f"host-{number}" for number in range(HOSTS)}
        assert one.isdisjoint(other)
        killed, left = children
        process = decisions[0][0].part.own
        kill(killed)
        with psycopg.connect(postgres_url) as connection:
            connection.execute("UPDATE heartbeat SET heard_at_s = heard_at_s - 60 WHERE process = %s", (process,))
        wait_until(lambda: part_of(left) is None)
        # An emptier host comes first, and the smallest part is one host with all instances of its process.
        assert {ask(left).picks[0].host for _ in range(HOSTS * (HOSTS + 1))} > one
    with open_roost(config) as product:
        assert product.why(decisions[0][-1].uuid).decision.part == decisions[0][-1].part
        assert all(product.replay(decision.uuid).is_same for each in decisions for decision in each)
