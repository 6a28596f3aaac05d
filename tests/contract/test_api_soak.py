"""Many clients of several servers on one PostgreSQL: no overcommitment, and no loss of acknowledged writes."""

import json
import subprocess
import sys
import threading
import time
from collections import Counter
from contextlib import closing

import pytest

from roost.store.audit import audit
from tests.contract.claim_client import OWN, PROVIDERS, SHARED, TOTALS, own_consumer, provider_name, shared_consumer
from tests.contract.placement_servers import Client, servers
from tests.support.fleets.named_uuids import uuid_named
from tests.support.fleets.products import ROOT

pytestmark = pytest.mark.long


def create_providers(client):
    for number in range(PROVIDERS):
        create(client, provider_name(number), TOTALS)


def create(client, name, totals, **more):
    body = {"name": name, "uuid": uuid_named(name), **more}
    assert client.request("POST", "/resource_providers", body)[0] == 200
    inventories = {resource_class: {"total": total} for resource_class, total in totals.items()}
    if inventories:
        body = {"resource_provider_generation": 0, "inventories": inventories}
        assert client.request("PUT", f"/resource_providers/{uuid_named(name)}/inventories", body)[0] == 200


def amounts(shown):
    return {uuid: each["resources"] for uuid, each in shown["allocations"].items()}


def run(database, folder, *, server_count, client_count, duration_s, is_killed):
    """Run clients, kill a server half-way if requested, and check the result; return counts of the responses."""
    with servers(database, server_count) as (started, addresses):
        with closing(Client(addresses)) as client:
            create_providers(client)
        command = [sys.executable, "-m", "tests.contract.claim_client"]
        logs = [folder / f"client-{number}.log" for number in range(client_count)]
        clients = [
            subprocess.Popen(
                [*command, str(number), str(duration_s), log, *addresses], cwd=ROOT, stdout=subprocess.PIPE
            )
            for number, log in enumerate(logs)
        ]
        if is_killed:
            while not all(log.exists() and log.stat().st_size for log in logs):
                assert all(client.poll() is None for client in clients)
                time.sleep(0.05)
            time.sleep(duration_s / 3)
            started[-1].kill()
        reports = [json.loads(client.communicate(timeout=duration_s + 60)[0]) for client in clients]
        alive = server_count - is_killed
        in_doubt = {name for each in reports for name in each["in_doubt"]}
        with closing(Client(addresses)) as client:
            for server in range(alive):
                check_sums(client, server, client_count)
                check_acknowledged(client, server, logs=logs, in_doubt=in_doubt)
    assert audit(database) == []
    assert [each for report in reports for each in report["unexpected"]] == []
    answers = sum((Counter(report["counts"]) for report in reports), Counter())
    assert not [answer for answer in answers if answer.split()[-1].startswith("5")]
    assert answers["204"] > client_count
    return answers


def check_sums(client, server, client_count):
    """Check that usages equal the sums of allocations, by consumer and by provider, and fit the totals."""
    names = [own_consumer(each, number) for each in range(client_count) for number in range(OWN)]
    names += [shared_consumer(number) for number in range(SHARED)]
    sums = Counter()
    for name in names:
        for uuid, resources in amounts(
            client.request("GET", f"/allocations/{uuid_named(name)}", server=server)[1]
        ).items():
            sums.update({(uuid, resource_class): amount for resource_class, amount in resources.items()})
    for number in range(PROVIDERS):
        uuid = uuid_named(provider_name(number))
        usages = client.request("GET", f"/resource_providers/{uuid}/usages", server=server)[1]["usages"]
        shown = client.request("GET", f"/resource_providers/{uuid}/allocations", server=server)[1]
        of_provider = sum((Counter(each["resources"]) for each in shown["allocations"].values()), Counter())
        for resource_class, total in TOTALS.items():
            assert usages[resource_class] == sums[uuid, resource_class] == of_provider[resource_class]
            assert usages[resource_class] <= total


def check_acknowledged(client, server, *, logs, in_doubt):
    """Check the last acknowledged write of each consumer, except consumers with an unknown outcome."""
    for log in logs:
        last = {}
        for line in log.read_text().splitlines():
            name, *rest = json.loads(line)
            last[name] = rest
        for name, (wanted, generation) in last.items():
            if name not in in_doubt:
                shown = client.request("GET", f"/allocations/{uuid_named(name)}", server=server)[1]
                assert (amounts(shown), shown.get("consumer_generation", 0)) == (wanted, generation), name


def test_clients_of_three_servers_lose_nothing_when_one_is_killed(postgres_url, tmp_path):
    run(postgres_url, tmp_path, server_count=3, client_count=4, duration_s=4, is_killed=True)


@pytest.mark.soak
@pytest.mark.parametrize("is_killed", [False, True])
def test_eight_clients_of_four_servers_lose_nothing_in_two_minutes(postgres_url, tmp_path, is_killed):
    answers = run(postgres_url, tmp_path, server_count=4, client_count=8, duration_s=120, is_killed=is_killed)
    print(dict(answers))


def test_reshape_of_devices_in_use_succeeds_under_claims_of_another_server(postgres_url):
    host, children = uuid_named("host"), [f"child-{number}" for number in range(8)]
    with servers(postgres_url, 2) as (_, addresses), closing(Client(addresses)) as client:
        create(client, "host", {"VCPU": 100, "VGPU": 16})
        for child in children:
            create(client, child, {}, parent_provider_uuid=host)
        owner = {"project_id": "p", "user_id": "u", "consumer_type": "INSTANCE"}
        for number in range(16):
            body = {"allocations": {host: {"resources": {"VGPU": 1}}}, "consumer_generation": None, **owner}
            assert client.request("PUT", f"/allocations/{uuid_named(f'server-{number}')}", body)[0] == 204
        stop, statuses = threading.Event(), set()

        def churn(name):
            path = f"/allocations/{uuid_named(name)}"
            body = {"allocations": {host: {"resources": {"VCPU": 2}}}, "consumer_generation": None, **owner}
            with closing(Client(addresses)) as other:
                while not stop.is_set():
                    statuses.add(other.request("PUT", path, body, server=1)[0])
                    statuses.add(other.request("DELETE", path, server=1)[0])
                    time.sleep(0.01)

        clients = [threading.Thread(target=churn, args=(f"client-{number}",)) for number in range(2)]
        for each in clients:
            each.start()
        try:
            deadline = time.monotonic() + 60
            while (answer := client.request("POST", "/reshaper", _reshape(client, children, owner)))[0] != 204:
                assert answer[1]["errors"][0]["code"] == "placement.concurrent_update"
                assert time.monotonic() < deadline
        finally:
            stop.set()
            for each in clients:
                each.join()
        assert statuses == {204}
        for server in range(2):
            of_children = [
                client.request("GET", f"/resource_providers/{uuid_named(child)}/usages", server=server)[1]["usages"]
                for child in children
            ]
            assert of_children == [{"VGPU": 2}] * 8
    assert audit(postgres_url) == []


def _reshape(client, children, owner):
    host = uuid_named("host")
    generation = client.request("GET", f"/resource_providers/{host}")[1]["generation"]
    new_inventories = {host: {"resource_provider_generation": generation, "inventories": {"VCPU": {"total": 100}}}}
    for child in children:
        inventories = {"VGPU": {"total": 2}}
        new_inventories[uuid_named(child)] = {"resource_provider_generation": 0, "inventories": inventories}
    allocations = {
        uuid_named(f"server-{number}"): {
            "allocations": {uuid_named(children[number % 8]): {"resources": {"VGPU": 1}}},
            "consumer_generation": 1,
            **owner,
        }
        for number in range(16)
    }
    return {"inventories": new_inventories, "allocations": allocations}
