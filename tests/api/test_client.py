"""The client library, both synchronous and asynchronous, against a real server over HTTP."""

import itertools
import socket
import threading
import time

import pytest

from roost import errors
from roost.app import open_roost
from roost.client import (
    ClientOptions,
    InvalidRequest,
    NoAnswer,
    ObjectMissing,
    OperationOpen,
    RequestConflict,
    RequestDenied,
    Retry,
    ServerTrouble,
)
from roost.client.structs import (
    CapacityBody,
    ConsolidationBody,
    DecisionBody,
    DecisionsQuery,
    ExplanationBody,
    FlavorEntry,
    HostsQuery,
    InstanceRequestBody,
    InstancesBody,
    InstancesQuery,
    NextBody,
    OperationsQuery,
    RequestDocument,
    RoomBody,
    ServicePatch,
)
from tests.support.fleets.products import fleet
from tests.support.servers.cutting_proxy import cutting_proxy
from tests.support.servers.library_clients import KINDS, library_client
from tests.support.servers.scripted_server import scripted_server
from tests.support.servers.servers import serve

SMALL = DecisionBody(flavor=FlavorEntry(name="small", vcpus=1, memory_mb=16))
FAST = Retry(pause_first_s=0.001, pause_max_s=0.01)
FAST_AND_PATIENT = Retry(pause_first_s=0.001, pause_max_s=0.01, attempts_max=100)
HOSTS = 5
PROBLEM = {"type": "", "title": "", "detail": "not now", "request_id": "req-1"}

pytestmark = pytest.mark.parametrize("kind", sorted(KINDS))


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server over five hosts of 100 VCPU."""
    folder = tmp_path_factory.mktemp("client")
    with open_roost(None, folder) as roost:
        roost.install(fleet(HOSTS, vcpus=100))
    with serve(noun="up", folder=folder) as running:
        yield running


@pytest.fixture
def client(kind, server):
    """A client of the server."""
    with library_client(kind, server.address, token="admin", retry=FAST) as opened:
        yield opened


def count_claims(client):
    """Return the number of claims on the server."""
    return sum(1 for _ in client.instances(InstancesQuery(limit=1000)))


def test_decision_is_made_shown_and_explained(client):
    decision = client.decide(SMALL)
    assert decision.outcome == "granted"
    assert client.decision(decision.uuid) == decision
    assert client.why(decision.uuid).decision == decision
    assert next(iter(client.decisions(DecisionsQuery(limit=1)))).uuid == decision.uuid


def test_dry_run_claims_nothing(client):
    before = client.capacity_of(CapacityBody(request=RequestDocument(flavor=SMALL.flavor))).count
    tried = client.decide(DecisionBody(flavor=SMALL.flavor, dry_run=True))
    assert (tried.dry_run, tried.outcome) == (True, "granted")
    assert client.capacity_of(CapacityBody(request=RequestDocument(flavor=SMALL.flavor))).count == before


def test_refusal_is_a_decision_and_is_counted(client):
    large = FlavorEntry(name="large", vcpus=10_000)
    decision = client.decide(DecisionBody(flavor=large))
    assert (decision.outcome, decision.picks) == ("refused", [])
    assert client.refusals().refusals >= 1
    assert client.explain(ExplanationBody(flavor=large)).decision.outcome == "refused"


def test_claim_moves_to_the_next_alternate_and_is_released(client):
    decision = client.decide(SMALL)
    (pick,) = decision.picks
    step = client.next_alternate(decision.uuid, NextBody(from_host=pick.host))
    assert step.pick.host != pick.host
    assert client.instance(pick.instance_uuid).host == step.pick.host
    assert client.delete_instance(pick.instance_uuid) is None
    with pytest.raises(ObjectMissing) as error:
        client.instance(pick.instance_uuid)
    assert isinstance(error.value, errors.NotFound)


def test_lists_are_iterators_over_all_pages(client):
    for _ in range(3):
        client.decide(SMALL)
    assert [host.host for host in client.hosts(HostsQuery(limit=2))] == [f"host-{number}" for number in range(HOSTS)]
    paged = [each.uuid for each in itertools.islice(client.decisions(DecisionsQuery(limit=1)), 3)]
    assert paged == [each.uuid for each in itertools.islice(client.decisions(), 3)]
    claims = {each.uuid for each in client.instances(InstancesQuery(limit=2))}
    assert claims == {each.uuid for each in client.instances()}
    assert len(claims) >= 3


def test_host_is_shown_and_disabled(client):
    assert client.host("host-1").resources["VCPU"].total == 100
    assert client.providers("host-1").provider_count == 1
    changed = client.change_service("host-1", ServicePatch(disabled=True, disabled_reason="repair"))
    assert (changed.disabled, changed.disabled_reason) == (True, "repair")
    assert client.change_service("host-1", ServicePatch(disabled=False)).disabled is False
    assert client.status().hosts.up == HOSTS


def test_stored_flavor_is_used_by_name(client):
    assert client.store_flavor("tiny", FlavorEntry(vcpus=1)).vcpus == 1
    assert "tiny" in [flavor.name for flavor in client.flavors()]
    assert client.capacity("tiny").count > 0
    assert client.decide(DecisionBody(flavor="tiny")).outcome == "granted"


def test_plans_are_made(client):
    assert client.plan_room(RoomBody(request=InstanceRequestBody(flavor=SMALL.flavor))).moves == []
    assert client.plan_consolidation(ConsolidationBody(hosts=1)).moves is not None
    assert client.plan_balance().moves is not None


def test_operation_is_awaited_with_its_progress(client):
    accepted = client.boot(InstancesBody(flavor=SMALL.flavor, name="web"))
    states = []
    ended = client.wait(accepted.operation, limit_s=60, on_progress=states.append)
    assert ended.outcome == "failed", "these hosts have no agents"
    assert states[-1] == ended
    assert accepted.operation in [each.uuid for each in client.operations(OperationsQuery(limit=1))]
    assert client.operation(accepted.operation).outcome == "failed"


def test_wait_ends_with_its_limit(kind):
    operation = {
        **dict.fromkeys(["step", "problem", "user_id", "project_id", "request_id"], ""),
        **{name: [] for name in ("instances", "orders", "story")},
        **dict.fromkeys(["created_at_s", "changed_at_s"], 1.0),
        **dict.fromkeys(["drain", "plan"]),
        "uuid": "u",
        "kind": "drain",
        "outcome": "open",
        "is_cancelled": False,
    }
    with (
        scripted_server((200, operation)) as (address, _),
        library_client(kind, address) as own,
        pytest.raises(OperationOpen) as error,
    ):
        own.wait("u", limit_s=0)
    assert error.value.operation.uuid == "u"


def test_refusals_of_the_server_are_typed_and_sent_once(client, kind, server):
    with pytest.raises(InvalidRequest) as error:
        client.decide(DecisionBody(flavor="missing"))
    assert (error.value.status, error.value.problem.field) == (400, "$.flavor")
    assert error.value.problem_type == "missing-reference"
    with pytest.raises(RequestConflict) as conflict:
        client.next_alternate(client.decide(SMALL).uuid, NextBody(from_host="elsewhere"))
    assert conflict.value.problem_type == "conflict"
    with cutting_proxy(server.port, []) as proxy, library_client(kind, proxy.address, token="user") as own:
        with pytest.raises(RequestDenied) as denied:
            own.decide(SMALL)
        assert len(proxy.requests) == 1
    assert "admin" in denied.value.problem.needed_roles


def test_key_of_the_caller_repeats_the_first_decision(client, kind):
    key = f"order {kind}"
    first = client.decide(SMALL, idempotency_key=key)
    assert client.decide(SMALL, idempotency_key=key) == first
    with pytest.raises(InvalidRequest) as error:
        client.decide(DecisionBody(flavor=SMALL.flavor, count=2), idempotency_key=key)
    assert error.value.problem_type == "key-reused"
    client.delete_instance(first.picks[0].instance_uuid)


@pytest.mark.parametrize("cut", ["request", "answer", "part"])
def test_lost_connection_doubles_no_decision(kind, server, cut):
    with cutting_proxy(server.port, [None, cut, cut]) as proxy:
        with library_client(kind, proxy.address, token="admin", retry=FAST) as own:
            count = count_claims(own)
            decision = own.decide(SMALL)
            assert count_claims(own) == count + 1
            assert own.decision(decision.uuid) == decision
        keys = {line for each in proxy.requests[1:4] for line in each.split(b"\r\n") if line.startswith(b"idempotency")}
        assert len(keys) == 1
        assert len(proxy.requests) == 6, "two lists, three attempts of the decision, and its show"


def test_lost_connections_of_many_threads_double_no_decision(kind, server):
    """Each decision of eight clients is lost up to twice, at each possible moment."""
    cuts = ["request", "answer", None, "part", "answer", None] * 20
    with library_client(kind, server.address, token="admin") as watcher:
        count = count_claims(watcher)
        found = []
        with cutting_proxy(server.port, cuts) as proxy:

            def decide():
                with library_client(kind, proxy.address, token="admin", retry=FAST_AND_PATIENT) as own:
                    found.extend(own.decide(SMALL) for _ in range(5))

            threads = [threading.Thread(target=decide) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
        assert len({decision.uuid for decision in found}) == 40
        assert count_claims(watcher) == count + 40


def test_answer_that_never_arrives_is_asked_for_again_with_its_key(kind, server):
    once = Retry(attempts_max=1)
    with (
        cutting_proxy(server.port, ["answer"]) as proxy,
        library_client(kind, proxy.address, token="admin", retry=once) as own,
    ):
        with pytest.raises(NoAnswer) as error:
            own.decide(SMALL)
        count = count_claims(own)
        assert own.decide(SMALL, idempotency_key=error.value.idempotency_key).outcome == "granted"
        assert count_claims(own) == count


def test_busy_server_is_asked_again(kind):
    body = {**PROBLEM, "status": 503}
    answers = [(503, body), (429, body), (200, {"flavors": []})]
    with scripted_server(*answers) as (address, requests), library_client(kind, address, retry=FAST) as own:
        assert own.flavors() == []
    assert len(requests) == 3


def test_server_that_stays_busy_is_an_error(kind):
    twice = Retry(attempts_max=2, pause_first_s=0.001)
    with (
        scripted_server(*[(503, {**PROBLEM, "status": 503})] * 2) as (address, _),
        library_client(kind, address, retry=twice) as own,
        pytest.raises(ServerTrouble, match="not now"),
    ):
        own.flavors()


def test_answer_of_another_program_is_an_error(kind):
    with scripted_server((200, b"<html>"), (404, b"<html>")) as (address, _), library_client(kind, address) as own:
        with pytest.raises(errors.Unavailable, match="not of this API"):
            own.flavors()
        with pytest.raises(ObjectMissing, match="status 404: <html>"):
            own.flavors()


def test_url_with_the_version_is_refused(kind, server):
    with (
        library_client(kind, f"{server.address}/v1", token="admin") as own,
        pytest.raises(errors.BadRequest, match="must not end with /v1"),
    ):
        own.status()


def test_silent_server_is_given_up_after_the_timeout(kind):
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url, options = f"http://127.0.0.1:{listener.getsockname()[1]}", ClientOptions(timeout_s=0.2)
        with library_client(kind, url, options=options) as own, pytest.raises(NoAnswer):
            own.status()


def test_connections_are_kept(kind, server):
    with cutting_proxy(server.port, []) as proxy, library_client(kind, proxy.address, token="admin") as own:
        for _ in range(3):
            own.status()
        assert proxy.connections == 1


def test_events_follow_decisions(client, server):
    """The stream begins at some moment after its request, so decisions are repeated until events arrive."""
    seen = []
    thread = threading.Thread(target=lambda: seen.extend(itertools.islice(client.events(), 3)))
    thread.start()
    with library_client("sync", server.address, token="admin") as other:
        while thread.is_alive():
            decision = other.decide(SMALL)
            other.delete_instance(decision.picks[0].instance_uuid)
            time.sleep(0.05)
    thread.join()
    assert "scheduler.select_destinations.end" in [event.event_type for event in seen]


def test_batch_has_an_answer_for_each_request(client):
    answers = client.decide_batch([SMALL, DecisionBody(flavor="missing"), SMALL])
    assert [answer.status for answer in answers] == [201, 400, 201]
    assert answers[1].problem.field == "$.flavor"
    assert client.decision(answers[2].decision.uuid) == answers[2].decision


def test_lost_batch_is_repeated_without_a_second_effect(kind, server):
    with (
        cutting_proxy(server.port, [None, "answer"]) as proxy,
        library_client(kind, proxy.address, token="admin", retry=FAST) as own,
    ):
        count = count_claims(own)
        answers = own.decide_batch([SMALL] * 10)
        assert [answer.replayed for answer in answers] == [True] * 10
        assert count_claims(own) == count + 10
