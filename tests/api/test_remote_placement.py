"""Decisions with claims at a remote Placement: our own server, and the reference implementation if installed."""

import pytest

from roost.errors import BadRequest, BadSettings, BuildFailed, PlacementGone
from roost.model.fleet import Fleet, NamedRequest
from roost.model.group import ServerGroup
from roost.model.work.work_rows import Put
from roost.simulator.stable_uuids import uuid_of
from tests.support.conductors.builders import ScriptedBuilder, attempts_of, conductor
from tests.support.conductors.work_rows import operation
from tests.support.fleets.products import request, roost
from tests.support.servers.remote_placements import RemoteClient, host, roost_api_over_remote, stocked_placement
from tests.support.servers.servers import serve

pytestmark = pytest.mark.long

SMALL = {"flavor": {"name": "small", "vcpus": 2, "memory_mb": 512}}
APART = ServerGroup(uuid=uuid_of("group", "apart"), name="apart", policy="anti-affinity")


@pytest.fixture(params=["ours", "reference"])
def remote(request, tmp_path):
    """A remote Placement with host-0, host-1 and host-2, of 4 VCPU each."""
    with stocked_placement(request, tmp_path) as placement:
        yield placement


@pytest.fixture
def api(remote):
    with roost_api_over_remote(remote.address, Fleet(groups=[APART])) as client:
        yield client


class RivalPlacement:
    """A remote Placement that runs a function before each claim."""

    def __init__(self, remote, before):
        self._remote, self._before = remote, before

    def __getattr__(self, name):
        return getattr(self._remote, name)

    def claim(self, consumer_uuid, allocations, **owner):
        """Run the function, then claim."""
        self._before(allocations)
        return self._remote.claim(consumer_uuid, allocations, **owner)


def test_instance_is_claimed_remotely_on_the_best_host(api, remote):
    answer = api.post("/decisions", SMALL)
    assert (answer.status, answer.json["outcome"]) == (201, "granted")
    (pick,) = answer.json["picks"]
    assert (pick["host"], pick["allocations"]) == ("host-2", {host(2): {"VCPU": 2, "MEMORY_MB": 512}})
    assert remote.held(pick["instance_uuid"]) == pick["allocations"]
    assert api.get(f"/decisions/{answer.json['uuid']}").json == answer.json
    assert answer.json["stages"][0]["rule"] == "search"
    assert answer.json["scores"][0]["host"] == "host-2"
    assert api.get(f"/instances/{pick['instance_uuid']}").json["host"] == "host-2"


def test_remote_usage_counts_for_filters_and_weighers(api, remote):
    remote.take(2, MEMORY_MB=12288 - 1024)
    remote.take(1, VCPU=3)
    assert api.post("/decisions", SMALL).json["picks"][0]["host"] == "host-0"


def test_request_beyond_all_hosts_is_refused_with_a_reason(api):
    refused = api.post("/decisions", {"flavor": {"name": "large", "vcpus": 5, "memory_mb": 512}}).json
    assert (refused["outcome"], refused["picks"]) == ("refused", [])
    assert "are no candidates of Placement" in refused["reason"]
    unknown = api.post("/decisions", {"flavor": {"vcpus": 1, "extra_specs": {"trait:CUSTOM_NOBODY": "required"}}}).json
    assert unknown["outcome"] == "refused"
    assert "CUSTOM_NOBODY" in unknown["reason"]


def test_next_moves_the_remote_claim_through_all_alternates(api, remote):
    decision = api.post("/decisions", SMALL).json
    (pick,) = decision["picks"]
    for number, left in ((1, 1), (0, 0)):
        step = api.post(f"/decisions/{decision['uuid']}/next", {}).json
        assert (step["pick"]["host"], step["left"]) == (f"host-{number}", left)
        assert remote.held(pick["instance_uuid"]) == step["pick"]["allocations"]
        assert list(step["pick"]["allocations"]) == [host(number)]
        assert api.get(f"/instances/{pick['instance_uuid']}").json["host"] == f"host-{number}"
    assert api.post(f"/decisions/{decision['uuid']}/next", {}).status == 409
    assert list(remote.held(pick["instance_uuid"])) == [host(0)]


def test_next_skips_an_alternate_that_filled_up(api, remote):
    decision = api.post("/decisions", SMALL).json
    remote.take(1, VCPU=3)
    step = api.post(f"/decisions/{decision['uuid']}/next", {}).json
    assert (step["pick"]["host"], step["left"]) == ("host-0", 0)
    remote.take(2, VCPU=3)
    assert api.get("/instances").json["instances"][0]["host"] == "host-0"


def test_instance_keeps_its_host_if_no_alternate_fits(api, remote):
    decision = api.post("/decisions", SMALL).json
    for number in (0, 1):
        remote.take(number, VCPU=3)
    assert api.post(f"/decisions/{decision['uuid']}/next", {}).status == 409
    (instance,) = api.get("/instances").json["instances"]
    assert instance["host"] == "host-2"
    assert list(remote.held(instance["uuid"])) == [host(2)]


def test_released_instance_holds_nothing_remotely(api, remote):
    uuid = api.post("/decisions", SMALL).json["picks"][0]["instance_uuid"]
    assert api.delete(f"/instances/{uuid}").status == 204
    assert remote.held(uuid) == {}
    assert api.get("/instances").json["instances"] == []
    assert api.delete(f"/instances/{uuid}").status == 404


def test_host_that_fills_up_before_the_claim_is_skipped(remote):
    filled = []

    def before(allocations):
        if host(2) in allocations and not filled:
            filled.append(2)
            remote.take(2, VCPU=3)

    with roost_api_over_remote(remote.address, wrapped=lambda each: RivalPlacement(each, before)) as api:
        decision = api.post("/decisions", SMALL).json
        assert (decision["picks"][0]["host"], decision["conflicts"]) == ("host-1", ["host-2"])
        assert [each["host"] for each in api.get("/instances").json["instances"]] == ["host-1"]
        assert remote.used(2)["VCPU"] == 3


def test_refused_claim_returns_the_slot_of_its_group(remote):
    conflicts = []

    def before(allocations):
        if host(2) in allocations and not conflicts:
            conflicts.append(2)
            remote.take(2, VCPU=3)

    body = SMALL | {"group": APART.uuid}
    with roost_api_over_remote(
        remote.address, Fleet(groups=[APART]), wrapped=lambda each: RivalPlacement(each, before)
    ) as api:
        hosts = [api.post("/decisions", body).json["picks"][0]["host"] for _ in range(2)]
        assert hosts == ["host-1", "host-0"]
        assert remote.ask("DELETE", f"/allocations/{uuid_of('somebody', '2')}")[0] == 204
        assert api.post("/decisions", body).json["picks"][0]["host"] == "host-2"
        assert api.post("/decisions", body).json["outcome"] == "refused"


class SlowPlacement:
    """A remote Placement that runs a function between a reply and its delivery."""

    def __init__(self, remote):
        self._remote, self.before_reply = remote, []

    def __getattr__(self, name):
        return getattr(self._remote, name)

    def candidates(self, query):
        """Search, run the next function, and return the candidates."""
        answer = self._remote.candidates(query)
        if self.before_reply:
            self.before_reply.pop()()
        return answer


def test_two_processes_never_share_a_slot_of_a_group(remote, postgres_url):
    body = SMALL | {"group": APART.uuid}
    with (
        roost_api_over_remote(remote.address, Fleet(groups=[APART]), url=postgres_url) as one,
        roost_api_over_remote(remote.address, url=postgres_url, wrapped=SlowPlacement) as other,
    ):
        first = []
        other.remote.placement.before_reply.append(lambda: first.append(one.post("/decisions", body).json))
        second = other.post("/decisions", body).json
        assert (first[0]["picks"][0]["host"], second["picks"][0]["host"]) == ("host-2", "host-1")
        assert second["conflicts"] == ["host-2"]
        assert [remote.used(number)["VCPU"] for number in range(3)] == [0, 2, 2]


def test_running_instances_is_refused_without_a_claim(api, remote):
    answer = api.post("/instances", {**SMALL, "name": "web"})
    assert answer.status == 409
    text = "this server uses a remote Placement: decisions are supported, running instances is not"
    assert answer.json["detail"] == text
    assert api.get("/instances").json["instances"] == []
    assert remote.used(2)["VCPU"] == 0


def test_several_instances_are_claimed_all_or_none(api, remote):
    decision = api.post("/decisions", SMALL | {"count": 6}).json
    assert sorted(pick["host"] for pick in decision["picks"]) == sorted(["host-0", "host-1", "host-2"] * 2)
    for pick in decision["picks"]:
        assert api.delete(f"/instances/{pick['instance_uuid']}").status == 204
    refused = api.post("/decisions", SMALL | {"count": 7}).json
    assert (refused["outcome"], refused["found"]) == ("refused", 6)
    assert [remote.used(number)["VCPU"] for number in range(3)] == [0, 0, 0]
    assert api.get("/instances").json["instances"] == []


def test_unexpected_error_takes_the_claims_of_its_request_back(remote):
    claims = []

    def before(allocations):
        claims.append(allocations)
        if len(claims) == 2:
            raise RuntimeError("an error of a rule")

    with roost_api_over_remote(remote.address, wrapped=lambda each: RivalPlacement(each, before)) as api:
        with pytest.raises(RuntimeError, match="of a rule"):
            api.post("/decisions", SMALL | {"count": 2})
        assert [remote.used(number)["VCPU"] for number in range(3)] == [0, 0, 0]
        assert api.get("/instances").json["instances"] == []
        assert api.post("/decisions", SMALL).json["outcome"] == "granted"


def test_dry_run_equals_the_decision_and_claims_nothing(api, remote):
    dry = api.post("/decisions", SMALL | {"dry_run": True}).json
    assert remote.used(2)["VCPU"] == 0
    assert api.get("/instances").json["instances"] == []
    real = api.post("/decisions", SMALL).json
    assert [pick["host"] for pick in dry["picks"]] == [pick["host"] for pick in real["picks"]]
    assert dry["stages"] == real["stages"]


def test_request_with_an_idempotency_key_is_claimed_once(api, remote):
    first, second = (api.post("/decisions", SMALL, headers={"idempotency-key": "one"}) for _ in range(2))
    assert first.json == second.json
    assert remote.used(2)["VCPU"] == 2


def test_functions_that_need_local_amounts_are_refused(api):
    decision = api.post("/decisions", SMALL).json
    assert "remote Placement" in api.get(f"/decisions/{decision['uuid']}/why").json["note"]
    assert api.post(f"/decisions/{decision['uuid']}/replay", {}).status == 404
    assert "cannot be counted" in api.get("/capacity?flavor=small").json["detail"]


def test_new_hosts_are_discovered_and_a_tree_is_one_host(api, remote):
    root, child = uuid_of("late", "root"), uuid_of("late", "child")
    remote.add("late", root, MEMORY_MB=65536)
    remote.add("late_numa", child, parent=root, VCPU=64)
    assert api.post("/decisions", SMALL).json["picks"][0]["host"] == "host-2"
    api.look()
    pick = api.post("/decisions", SMALL).json["picks"][0]
    assert (pick["host"], pick["allocations"]) == ("late", {root: {"MEMORY_MB": 512}, child: {"VCPU": 2}})


def test_remote_aggregates_apply_to_hosts(api, remote):
    aggregate = uuid_of("aggregate", "one")
    generation = remote.ask("GET", f"/resource_providers/{host(0)}")[1]["generation"]
    body = {"aggregates": [aggregate], "resource_provider_generation": generation}
    assert remote.ask("PUT", f"/resource_providers/{host(0)}/aggregates", body)[0] == 200
    api.look()
    body = SMALL | {"destination": {"aggregates": [[aggregate]]}}
    assert api.post("/decisions", body).json["picks"][0]["host"] == "host-0"


def test_unavailable_placement_responds_503_until_it_returns(tmp_path):
    with serve(folder=tmp_path) as server:
        port = server.port
        RemoteClient(server.address).stock(2)
        with roost_api_over_remote(server.address) as api:
            instance_uuid = api.post("/decisions", SMALL).json["picks"][0]["instance_uuid"]
            server.stop()
            refused = api.post("/decisions", SMALL)
            assert (refused.status, "remote Placement" in refused.json["detail"]) == (503, True)
            assert api.delete(f"/instances/{instance_uuid}").status == 503
            assert len(api.get("/instances").json["instances"]) == 1
            with pytest.raises(PlacementGone):
                api.look()
            with serve(folder=tmp_path, listen=f"127.0.0.1:{port}"):
                assert api.post("/decisions", SMALL).json["outcome"] == "granted"
                assert api.delete(f"/instances/{instance_uuid}").status == 204


def test_claim_with_a_lost_reply_is_released_later(remote):
    class LosesReplies(RivalPlacement):
        is_away = False

        def claim(self, consumer_uuid, allocations, **owner):
            assert self._remote.claim(consumer_uuid, allocations, **owner)
            if self.is_away is False:
                self.is_away = True
                raise PlacementGone("it was not heard")
            return True

        def release(self, consumer_uuid):
            if self.is_away is True:
                self.is_away = None
                raise PlacementGone("it was not heard")
            self._remote.release(consumer_uuid)

    with roost_api_over_remote(remote.address, wrapped=lambda each: LosesReplies(each, None)) as api:
        assert api.post("/decisions", SMALL).status == 503
        assert remote.used(2)["VCPU"] == 2
        assert api.get("/instances").json["instances"] == []
        assert api.post("/decisions", SMALL).json["outcome"] == "granted"
        assert remote.used(2)["VCPU"] == 2


def test_up_command_claims_remotely_and_remembers_after_restart(tmp_path, monkeypatch):
    monkeypatch.setattr("tests.support.servers.servers.environ", _with_token)
    far, near = tmp_path / "far", tmp_path / "near"
    far.mkdir()
    near.mkdir()
    admin = {"x-auth-token": "admin"}
    with serve(folder=far) as server:
        remote = RemoteClient(server.address)
        remote.stock(2)
        with serve("--placement", server.address, noun="up", folder=near) as own:
            decision = own.ask("POST", "/v1/decisions", SMALL, headers=admin)[2]
            assert own.ask("GET", "/placement/resource_providers", headers=admin)[0] == 404
            assert own.stop() == 0
        assert roost("audit", "--data", near, cwd=near).returncode == 0
        with serve("--placement", server.address, noun="up", folder=near) as own:
            (instance,) = own.ask("GET", "/v1/instances", headers=admin)[2]["instances"]
            assert instance["uuid"] == decision["picks"][0]["instance_uuid"]
            assert own.ask("DELETE", f"/v1/instances/{instance['uuid']}", headers=admin)[0] == 204
            assert remote.held(instance["uuid"]) == {}


def _with_token(sources):
    from tests.support.fleets.products import environ

    return environ(sources, ROOST_PLACEMENT_TOKEN="admin")


@pytest.mark.parametrize(
    ("url", "code", "sentence"),
    [
        ("http://127.0.0.1:9", 7, "the remote Placement cannot be used"),
        ("here", 3, "placement.remote_url: must be http://HOST:PORT/PATH"),
        ("http://me:secret@127.0.0.1", 3, "without name and password"),
    ],
)
def test_unusable_placement_url_is_one_line_of_error(tmp_path, url, code, sentence):
    result = roost("up", "--listen", "127.0.0.1:0", "--data", tmp_path, "--placement", url, cwd=tmp_path)
    assert (result.returncode, result.stderr.count("\n"), sentence in result.stderr) == (code, 1, True), result.stderr
    assert "secret" not in result.stderr


def test_server_without_a_placement_api_is_refused(tmp_path):
    with (
        serve("--metrics-listen", "127.0.0.1:0", folder=tmp_path) as server,
        pytest.raises(BadSettings, match="is not a Placement API"),
        roost_api_over_remote(f"http://127.0.0.1:{server.metrics_port}"),
    ):
        pass


def build(api, builder, wanted):
    """Build instances over the remote Placement, in the thread that owns the product."""
    return api.in_thread(lambda roost: conductor(roost, builder).build(wanted))


def test_build_continues_on_an_alternate_claimed_remotely(api, remote):
    builder, claims = ScriptedBuilder({"host-2": [BuildFailed("no network")]}), []
    builder.meanwhile = lambda uuid, name: claims.append((name, list(remote.held(uuid))))
    (outcome,) = build(api, builder, request(2))
    assert (outcome.status, outcome.host) == ("ACTIVE", "host-1")
    assert claims == [("host-2", [host(2)]), ("host-1", [host(1)])]
    assert api.get(f"/instances/{outcome.instance_uuid}").json["host"] == "host-1"


def test_failed_build_releases_its_remote_claim(api, remote):
    script = {f"host-{number}": [BuildFailed("no network")] for number in range(3)}
    builder = ScriptedBuilder(script)
    builder.meanwhile = lambda _, name: remote.take(1, VCPU=3) if name == "host-2" else None
    (outcome,) = build(api, builder, request(2))
    assert attempts_of(outcome) == [
        ("host-2", "claimed", "no network"),
        ("host-1", "refused", "conflict with a concurrent change on host-1"),
        ("host-0", "claimed", "no network"),
    ]
    assert "Exhausted all hosts" in outcome.fault
    assert (outcome.unreleased, remote.held(outcome.instance_uuid)) == ("", {})
    assert api.get("/instances").json["instances"] == []


def test_operation_steps_are_refused_with_a_remote_placement(api, remote):
    step = NamedRequest(request=request(), decision_uuid=uuid_of("decision", "1"), work=(Put(operation(1)),))
    (result,) = api.serving.run(lambda _: api.product.outcomes([step]))
    assert isinstance(result, BadRequest)
    assert remote.used(0)["VCPU"] == remote.used(1)["VCPU"] == remote.used(2)["VCPU"] == 0
