"""Outages of a controller: a long queue afterwards, claims of a crash that Nova's own command deletes, wrong clocks."""

import os
import signal
import subprocess
import uuid
from datetime import timedelta
from pathlib import Path

import pytest

from tests.differential.scheduler import nova
from tests.nova.nova_clouds import NovaCloud, new_uuid, open_sqlite_nova
from tests.nova.nova_schedulers import nova_scheduler, write_scheduler_conf
from tests.support.missing_programs import skip_test
from tests.support.nova_messages import destination, flavor
from tests.support.servers.nova_database import shared_template
from tests.support.wait import wait_until

pytestmark = pytest.mark.differential

WAITING = 10_000
# Nova requires the trait, since all services are recent.
LARGE_HOST = {
    "totals": {"VCPU": WAITING, "MEMORY_MB": 1_000_000, "DISK_GB": 100_000},
    "traits": ["OWNER_NOVA"],
}
SMALL = flavor(vcpus=1, memory_mb=64, root_gb=1)
DOWN_S = 60
IN_FLIGHT = 300
HOUR = timedelta(hours=1)


@pytest.fixture
def cloud(shared_broker, tmp_path, tmp_path_factory):
    """Yield a cloud with two large hosts in one cell, without a running service."""
    if nova.python() is None:
        skip_test(nova.HOW_TO_INSTALL)
    database, options = open_sqlite_nova(tmp_path, schema=shared_template(tmp_path_factory))
    options["DEFAULT"] = {"service_down_time": DOWN_S}
    broker = shared_broker.add_virtual_host(f"nova-{uuid.uuid4().hex[:8]}")
    cloud = NovaCloud(tmp_path, broker, database, options=options)
    (cloud.cell,) = database.cells
    with cloud.served():
        cloud.nodes = {name: cloud.add_host(cloud.cell, name, **LARGE_HOST) for name in ("h0", "h1")}
    yield cloud
    cloud.close()


def consumers(cloud):
    """Return the consumers on all hosts."""
    found = set()
    for number in cloud.nodes.values():
        found |= set(cloud.placement("GET", f"/resource_providers/{number}/allocations")["allocations"])
    return found


def answers(cloud):
    """Return the final replies, by the identifier of their call."""
    cloud.caller.read()
    return {reply["_msg_id"]: reply for reply in cloud.caller.replies if reply["ending"]}


def test_queue_of_an_outage_is_worked_off_and_each_call_is_answered_once(cloud):
    calls = {}
    for _ in range(WAITING):
        number = new_uuid()
        calls[cloud.send(number, flavor=SMALL)] = number
    with cloud.served() as server:
        cloud.database.report(cloud.cell)
        wait_until(lambda: len(answers(cloud)) == WAITING, within_s=300)
        assert all(reply["failure"] is None for reply in answers(cloud).values())
        assert sum(reply["ending"] for reply in cloud.caller.replies) == WAITING
        assert consumers(cloud) == set(calls.values())
        (peak,) = [
            line for line in Path(f"/proc/{server.process.pid}/status").read_text().splitlines() if "VmHWM" in line
        ]
    print(f"{WAITING:,} calls; most memory of the service: {int(peak.split()[1]) >> 10} MiB")


def test_nova_deletes_the_claims_of_a_crash(cloud, tmp_path):
    with cloud.served() as server:
        server.process.send_signal(signal.SIGSTOP)  # So that all calls arrive at once.
        calls = {}
        for _ in range(IN_FLIGHT):
            number = new_uuid()
            calls[cloud.send(number, flavor=SMALL)] = number
        server.process.send_signal(signal.SIGCONT)
        wait_until(lambda: answers(cloud))
        assert server.stop(signal.SIGKILL) == -signal.SIGKILL
    with cloud.served():
        cloud.database.report(cloud.cell)
        wait_until(lambda: not cloud.caller.channel.queue_declare("scheduler", passive=True).message_count)
        last = new_uuid()
        calls[cloud.send(last, flavor=SMALL)] = last
        wait_until(lambda: last in {calls[each] for each in answers(cloud)})
        answered = {calls[each] for each in answers(cloud)}
        hosts = {node: name for name, node in cloud.nodes.items()}
        for number in answered:
            (node,) = cloud.allocations(number)
            cloud.database.add_instance(cloud.cell, hosts[node], uuid=number)
        leaked = consumers(cloud) - answered
        conf = write_scheduler_conf(cloud, cloud.broker, tmp_path)
        assert audit(conf, "--verbose") == (3 if leaked else 0)
        assert audit(conf, "--verbose", "--delete") == (4 if leaked else 0)
        assert consumers(cloud) == answered
    print(f"{len(answered)} of {len(calls)} calls answered, {len(leaked)} claims deleted by nova-manage")


def audit(conf, *arguments):
    """Run nova-manage placement audit; return its exit code: 3 orphans, 4 all of them deleted, 0 none."""
    program = nova.python().with_name("nova-manage")
    command = [program, "--config-file", conf, "placement", "audit", *arguments]
    env = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    run = subprocess.run(command, env=env, capture_output=True, text=True, check=False)
    assert run.returncode in {0, 3, 4}, run.stdout + run.stderr
    return run.returncode


def test_hosts_with_clocks_an_hour_apart_are_down_for_both_schedulers(cloud, shared_broker, tmp_path):
    theirs = shared_broker.add_virtual_host(f"nova-{uuid.uuid4().hex[:8]}")
    with cloud.served():
        names = {"ahead": HOUR, "behind": -HOUR}
        cloud.nodes |= {name: cloud.add_host(cloud.cell, name, **LARGE_HOST) for name in names}
        with nova_scheduler(cloud, theirs, tmp_path) as caller:
            cloud.database.report(cloud.cell)
            for name, skew in names.items():
                seen = cloud.database.now() + skew
                cloud.database.set_service(cloud.cell, name, last_seen_up=seen, updated_at=seen)
            wait_until(lambda: not any(cloud.hosts()[name]["up"] for name in names), within_s=180)
            for name in names:
                sent = {"requested_destination": destination(host=name), "flavor": SMALL}
                assert caller.wait(cloud.send(new_uuid(), caller=caller, **sent))[-1]["failure"] is not None
                cloud.refuse(new_uuid(), **sent)
            for scheduler in (caller, cloud.caller):
                for _ in range(10):
                    reply = scheduler.wait(cloud.send(new_uuid(), caller=scheduler, flavor=SMALL))[-1]
                    assert reply["result"][0][0]["nova_object.data"]["service_host"] in {"h0", "h1"}
