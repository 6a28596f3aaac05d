"""The end of the service while calls are in progress: by SIGTERM, and by a crash. On SQLite."""

import signal
import uuid

import pytest

from tests.nova.nova_clouds import NovaCloud, new_database, new_uuid
from tests.support.wait import wait_until

CALLS = 40
LARGE = {"VCPU": 100, "MEMORY_MB": 65536}


@pytest.fixture
def cloud(shared_broker, tmp_path):
    """Yield a cloud with two hosts in one cell, without a running service."""
    database = new_database(f"sqlite:///{tmp_path / 'api'}")
    cell = database.add_cell(f"sqlite:///{tmp_path / 'cell'}")
    cloud = NovaCloud(tmp_path, shared_broker.add_virtual_host(f"nova-{uuid.uuid4().hex[:8]}"), database)
    with cloud.served():
        cloud.nodes = {f"h{number}": cloud.add_host(cell, f"h{number}", totals=LARGE) for number in range(2)}
    yield cloud
    cloud.close()


def send_calls(cloud):
    """Send many calls, and wait for the first answer; return the instance of each, by the identifier of its call."""
    cloud.server.process.send_signal(signal.SIGSTOP)  # So that all arrive at once.
    calls = {}
    for _ in range(CALLS):
        number = new_uuid()
        calls[cloud.send(number)] = number
    cloud.server.process.send_signal(signal.SIGCONT)
    wait_until(lambda: answers(cloud))
    return calls


def answers(cloud):
    """Return the identifiers of the calls with a final reply."""
    cloud.caller.read()
    replies = [reply for reply in cloud.caller.replies if reply["ending"]]
    assert all(reply["failure"] is None for reply in replies), replies
    return {reply["_msg_id"] for reply in replies}


def waiting(cloud):
    """Return the number of messages that no server took."""
    return cloud.caller.channel.queue_declare("scheduler", passive=True).message_count


def orphans(cloud, *, instances=()):
    """Return the consumers on the hosts that are no instances of Nova, as `nova-manage placement audit` does."""
    consumers = set()
    for number in cloud.nodes.values():
        consumers |= set(cloud.placement("GET", f"/resource_providers/{number}/allocations")["allocations"])
    return consumers - set(instances)


def test_calls_in_progress_are_answered_before_the_service_ends(cloud):
    with cloud.served() as server:
        calls = send_calls(cloud)
        assert server.stop() == 0
    wait_until(lambda: waiting(cloud) + len(answers(cloud)) == CALLS)
    with cloud.served():  # The next server takes the rest.
        wait_until(lambda: len(answers(cloud)) == CALLS)
        assert orphans(cloud) == set(calls.values())


def test_claims_without_an_answer_after_a_crash_are_found_by_an_audit(cloud):
    with cloud.served() as server:
        calls = send_calls(cloud)
        assert server.stop(signal.SIGKILL) == -signal.SIGKILL
    with cloud.served():
        wait_until(lambda: not waiting(cloud))
        last = new_uuid()
        calls[cloud.send(last)] = last
        wait_until(lambda: last in {calls[each] for each in answers(cloud)})
        answered = {calls[each] for each in answers(cloud)}
        leaked = orphans(cloud, instances=answered)
        # A call is lost at most once: its claim is whole or absent.
        assert leaked <= set(calls.values()) - answered
        assert all(len(cloud.allocations(number)) == 1 for number in leaked)
        cloud.release(*leaked)
        assert orphans(cloud) == answered
    print(f"{len(answered)} of {CALLS + 1} calls answered, {len(leaked)} claims without an answer")
