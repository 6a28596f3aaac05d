"""Aggregates, zones, hosts, services and groups over the /v1 API, in process."""

import threading
from concurrent.futures import ThreadPoolExecutor

import msgspec
import pytest

from roost.model.host import HostFacts
from roost.model.settings.roost_settings import Settings
from roost.placement.writes.labels import traits_of
from tests.support.fleets.products import fleet
from tests.support.fleets.worlds import aggregate, group, host, merge_fleets
from tests.support.servers.in_process_api import roost_api

SMALL = {"flavor": {"name": "small", "vcpus": 2, "memory_mb": 16}}
UNKNOWN = "00000000-0000-4000-8000-000000000000"


def create(own, path, body, **more):
    """Create an object and return it."""
    response = own.post(path, body, **more)
    assert response.status == 201, response.json
    return response.json


def patch(own, path, body):
    """Send a PATCH request."""
    return own.ask("PATCH", path, body)


def hosts_of(own, query=""):
    """Return the names of the hosts that match a query."""
    return [each["host"] for each in own.get(f"/hosts{query}").json["hosts"]]


def test_aggregate_is_created_changed_and_deleted(own):
    response = own.post("/aggregates", {"name": "rack-1", "availability_zone": "east", "metadata": {"ssd": "true"}})
    rack = response.json
    assert response.status == 201
    assert response.headers["location"].endswith(f"/aggregates/{rack['uuid']}")
    assert rack == {
        "uuid": rack["uuid"],
        "name": "rack-1",
        "availability_zone": "east",
        "metadata": {"ssd": "true", "availability_zone": "east"},
        "hosts": [],
        "other_providers": [],
        "warnings": [
            (
                "no enabled filter or weigher reads metadata 'ssd'; "
                "aggregate_instance_extra_specs or aggregate_image_properties_isolation would"
            )
        ],
    }
    path = f"/aggregates/{rack['uuid']}"
    del rack["warnings"]
    assert own.get(path).json == rack
    changed = patch(own, path, {"name": "rack-2", "availability_zone": None, "metadata": {"ssd": None, "gpu": "1"}})
    assert changed.json.pop("warnings") == [
        (
            "no enabled filter or weigher reads metadata 'gpu'; "
            "aggregate_instance_extra_specs or aggregate_image_properties_isolation would"
        )
    ]
    assert changed.json == own.get(path).json
    assert (changed.json["name"], changed.json["metadata"]) == ("rack-2", {"gpu": "1"})
    assert patch(own, path, {}).json == changed.json
    assert own.delete(path).status == 204
    assert [own.get(path).status, own.delete(path).status, patch(own, path, {}).status] == [404] * 3
    assert own.get("/aggregates").json == {"aggregates": [], "next": None}
    assert create(own, "/aggregates", {"name": "rack-2"})["metadata"] == {}


def test_hosts_join_and_leave_aggregates_that_form_a_zone(own):
    path = f"/aggregates/{create(own, '/aggregates', {'name': 'a', 'availability_zone': 'east'})['uuid']}"
    assert [own.put(f"{path}/hosts/{name}").status for name in ("host-1", "HOST-1", "none")] == [204, 204, 404]
    assert own.get(path).json["hosts"] == ["host-1"]
    assert own.get("/zones").json["zones"] == [
        {"name": "east", "available": True, "hosts": ["host-1"]},
        {"name": "nova", "available": True, "hosts": ["host-0", "host-2"]},
    ]
    decision = create(own, "/decisions", {**SMALL, "availability_zone": "east"})
    assert [pick["host"] for pick in decision["picks"]] == ["host-1"]
    assert hosts_of(own, "?zone=east") == hosts_of(own, "?aggregate=a") == ["host-1"]
    assert hosts_of(own, "?zone=west") == []
    refused = own.delete(path)
    assert (refused.status, "has 1 member" in refused.json["detail"]) == (409, True)
    assert [own.delete(f"{path}/hosts/host-1").status for _ in range(2)] == [204, 404]
    assert own.delete(path).status == 204


def test_zone_without_a_usable_host_is_not_available(own):
    path = f"/aggregates/{create(own, '/aggregates', {'name': 'a', 'availability_zone': 'east'})['uuid']}"
    own.put(f"{path}/hosts/host-1")
    patch(own, "/services/host-1", {"disabled": True})
    assert {each["name"]: each["available"] for each in own.get("/zones").json["zones"]} == {
        "east": False,
        "nova": True,
    }


def test_aggregates_are_filtered_by_name_zone_and_host():
    with roost_api(fleet(2, vcpus=4)) as own:
        uuids = {
            name: create(own, "/aggregates", {"name": name, "availability_zone": zone})["uuid"]
            for name, zone in (("a", "east"), ("b", "west"), ("c", "east,west"))
        }
        own.put(f"/aggregates/{uuids['b']}/hosts/host-1")

        def list_names(query):
            return [each["name"] for each in own.get(f"/aggregates?{query}").json["aggregates"]]

        assert list_names("") == ["a", "b", "c"]
        assert (
            list_names("zone=west"),
            list_names("name=a"),
            list_names("host=host-1"),
            list_names("host=host-0"),
        ) == (
            ["b", "c"],
            ["a"],
            ["b"],
            [],
        )
        assert own.get("/aggregates?host=none").status == 404


def test_unnamed_placement_aggregate_can_be_named():
    with roost_api(aggregate(""), host("h0", aggregates=[""]), host("pool", aggregates=[""])) as own:
        (unnamed,) = own.get("/aggregates").json["aggregates"]
        assert (unnamed["name"], unnamed["hosts"]) == ("", ["h0", "pool"])
        named = create(own, "/aggregates", {"name": "a", "uuid": unnamed["uuid"].upper()})
        assert named == {**unnamed, "name": "a"}
        assert own.post("/aggregates", {"name": "b", "uuid": unnamed["uuid"]}).status == 409


@pytest.mark.parametrize(
    ("path", "body", "status", "field"),
    [
        ("/aggregates", {"name": ""}, 400, "$.name"),
        ("/aggregates", {"name": "n" * 256}, 400, "$.name"),
        ("/aggregates", {"name": "b", "uuid": "x"}, 400, None),
        ("/aggregates", {"name": "b", "size": 1}, 400, "$"),
        ("/aggregates", {"name": "b", "metadata": {"a": 1}}, 400, "$.metadata['a']"),
        ("/aggregates", {"name": "b", "metadata": {"a": "x" * 256}}, 400, "$.metadata"),
        ("/aggregates", {"name": "b", "metadata": {"": "x"}}, 400, "$.metadata"),
        (
            "/aggregates",
            {"name": "b", "availability_zone": "e", "metadata": {"availability_zone": "w"}},
            400,
            "$.metadata.availability_zone",
        ),
        ("/aggregates", {"name": "a"}, 409, None),
        ("/groups", {"name": "g", "policy": "apart"}, 400, "$.policy"),
        ("/groups", {"policy": "affinity"}, 400, "$"),
        ("/groups", {"name": "g", "policy": "affinity", "max_server_per_host": 2}, 400, "$.max_server_per_host"),
        ("/groups", {"name": "g", "policy": "anti-affinity", "max_server_per_host": 0}, 400, "$.max_server_per_host"),
        ("/groups", {"name": "g", "policy": "affinity", "uuid": "x"}, 400, None),
    ],
)
def test_failed_creation_changes_nothing(own, path, body, status, field):
    create(own, "/aggregates", {"name": "a"})
    response = own.post(path, body)
    assert (response.status, response.json.get("field")) == (status, field), response.json
    assert [each["name"] for each in own.get("/aggregates").json["aggregates"]] == ["a"]
    assert own.get("/groups").json["groups"] == []


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/aggregates", None, 200),
        ("GET", "/zones", None, 200),
        ("GET", "/hosts/host-0", None, 200),
        ("GET", "/services", None, 200),
        ("GET", "/groups", None, 200),
        ("POST", "/aggregates", {"name": "a"}, 403),
        ("POST", "/groups", {"name": "a", "policy": "affinity"}, 403),
        ("PATCH", "/services/host-0", {"disabled": True}, 403),
        ("PUT", f"/aggregates/{UNKNOWN}/hosts/host-0", None, 403),
    ],
)
def test_observers_can_read_but_not_write(own, method, path, body, status):
    response = own.ask(method, path, body, headers={"x-auth-token": "joe", "x-roles": "observer"})
    assert response.status == status, response.json


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("GET", f"/aggregates/{UNKNOWN}"),
        ("DELETE", f"/aggregates/{UNKNOWN}"),
        ("PUT", f"/aggregates/{UNKNOWN}/hosts/host-0"),
        ("GET", "/aggregates/x"),
        ("GET", "/hosts/none"),
        ("GET", f"/groups/{UNKNOWN}"),
        ("GET", "/groups/x"),
    ],
)
def test_missing_objects_are_not_found(own, method, path):
    assert own.ask(method, path).status == 404


def test_host_shows_its_resources_and_usage(own):
    create(own, "/decisions", {**SMALL, "force_hosts": ["host-1"]})
    shown = own.get("/hosts/host-1").json
    assert (shown["host"], shown["node"], shown["zones"], shown["instances"]) == ("host-1", "host-1", ["nova"], 1)
    assert shown["resources"] == {
        "MEMORY_MB": {"total": 4096, "reserved": 0, "capacity": 4096, "used": 16, "free": 4080, "share": 0.0039},
        "VCPU": {"total": 4, "reserved": 0, "capacity": 4, "used": 2, "free": 2, "share": 0.5},
    }
    facts = shown.pop("facts")
    assert (shown.pop("disabled_at_s"), shown.pop("disabled_by")) == (None, "")
    assert shown == own.get("/hosts").json["hosts"][1]
    assert (shown["up"], shown["disabled"], facts) == (True, False, {})


def test_service_is_disabled_forced_down_and_enabled(own):
    service = patch(own, "/services/host-0", {"disabled": True, "disabled_reason": "disk"}).json
    assert (service["disabled"], service["disabled_reason"], service["up"]) == (True, "disk", True)
    assert own.get("/services").json["services"][0] == service
    assert create(own, "/decisions", {**SMALL})["picks"][0]["host"] == "host-1"
    assert create(own, "/decisions", {**SMALL, "count": 4})["found"] == 3
    service = patch(own, "/services/host-2", {"forced_down": True}).json
    assert (service["forced_down"], service["up"]) == (True, False)
    assert (hosts_of(own, "?disabled=true"), hosts_of(own, "?up=false")) == (["host-0"], ["host-2"])
    assert hosts_of(own, "?disabled=false&up=true") == ["host-1"]
    service = patch(own, "/services/HOST-0", {"disabled": False}).json
    assert (service["host"], service["disabled"], service["disabled_reason"]) == ("host-0", False, "")


@pytest.mark.parametrize(
    ("path", "body", "status", "field"),
    [
        ("/services/host-0", {}, 400, "$"),
        ("/services/host-0", {"disabled_reason": "disk"}, 400, "$.disabled_reason"),
        ("/services/host-0", {"disabled": False, "disabled_reason": "disk"}, 400, "$.disabled_reason"),
        ("/services/host-0", {"disabled": True, "disabled_reason": "x" * 256}, 400, "$.disabled_reason"),
        ("/services/host-0", {"disabled": "yes"}, 400, "$.disabled"),
        ("/services/none", {"disabled": True}, 404, None),
    ],
)
def test_invalid_service_change_is_refused_without_effect(own, path, body, status, field):
    response = patch(own, path, body)
    assert (response.status, response.json.get("field")) == (status, field), response.json
    assert hosts_of(own, "?disabled=true") == []


def test_disabled_host_has_its_trait_from_the_same_commit_on():
    own_traits = ["COMPUTE_NODE", "HW_CPU_X86_VMX"]
    document = merge_fleets(host("a"), host("b"))
    first, second = document.providers
    providers = [msgspec.structs.replace(first, traits=frozenset(own_traits)), second]
    with roost_api(msgspec.structs.replace(document, providers=providers)) as own:

        def labels():
            return [sorted(own.in_thread(lambda product, row=row: traits_of(product.state, row))) for row in (0, 1)]

        def decide():
            return create(own, "/decisions", SMALL)["picks"][0]["host"]

        assert patch(own, "/services/a", {"disabled": True}).status == 200
        assert labels() == [["COMPUTE_NODE", "COMPUTE_STATUS_DISABLED", "HW_CPU_X86_VMX"], []]
        assert decide() == "b"
        assert patch(own, "/services/a", {"disabled_reason": "disk"}).status == 200
        assert patch(own, "/services/b", {"disabled": True}).status == 200
        assert patch(own, "/services/a", {"disabled": False}).status == 200
        assert labels() == [own_traits, ["COMPUTE_STATUS_DISABLED"]]
        assert decide() == "a"


def test_host_is_down_when_its_last_report_is_too_old():
    old = merge_fleets(host("old", facts=HostFacts(reported_at_s=1.0)), host("never"))
    with roost_api(old) as own:
        assert (hosts_of(own, "?up=true"), hosts_of(own, "?up=false")) == (["never"], ["old"])
    patient = Settings(tables={"DEFAULT": {"service_down_time": 10**11}})
    with roost_api(old, settings=patient) as own:
        assert hosts_of(own, "?up=true") == ["old", "never"]


def test_group_lists_its_members(own):
    apart = create(own, "/groups", {"name": "apart", "policy": "anti-affinity"})
    assert (apart["max_server_per_host"], apart["member_count"]) == (1, 0)
    decision = create(own, "/decisions", {**SMALL, "count": 2, "group": "apart"})
    shown = own.get(f"/groups/{apart['uuid']}").json
    assert shown["members"] == [
        {"instance_uuid": pick["instance_uuid"], "name": "", "host": pick["host"], "node": pick["node"]}
        for pick in decision["picks"]
    ]
    assert own.get("/groups?name=apart&policy=anti-affinity").json["groups"] == [{**apart, "member_count": 2}]
    assert own.get("/groups?policy=affinity").json["groups"] == []
    assert own.post("/groups", {"name": "b", "policy": "affinity", "uuid": apart["uuid"]}).status == 409


def test_group_is_deleted_when_it_has_no_instances(own):
    apart = create(own, "/groups", {"name": "apart", "policy": "anti-affinity"})
    path, body = f"/groups/{apart['uuid']}", {**SMALL, "group": "apart"}
    picks = create(own, "/decisions", {**body, "count": 2})["picks"]
    for pick, count in zip(picks, ("2 instances", "1 instance"), strict=True):
        refused = own.delete(path)
        problem = f"server group {apart['uuid']} has {count}: delete them first"
        assert (refused.status, refused.json["detail"]) == (409, problem)
        assert own.delete(f"/instances/{pick['instance_uuid']}").status in {202, 204}
    assert own.delete(path).status == 204
    assert [own.get(path).status, own.delete(path).status] == [404, 404]
    assert own.get("/groups").json["groups"] == []
    assert own.get("/fleet").json["server_groups"] == []
    for refused in (own.post("/decisions", body), own.post("/instances", {**body, "name": "late"})):
        assert (refused.status, refused.json["field"]) == (400, "$.group")
    by_hint = own.post("/decisions", {**SMALL, "hints": {"group": apart["uuid"]}})
    assert (by_hint.status, by_hint.json["detail"]) == (404, f"no such server group: {apart['uuid']}")
    again = create(own, "/groups", {"name": "apart", "policy": "affinity", "uuid": apart["uuid"]})
    assert (again["uuid"], again["policy"]) == (apart["uuid"], "affinity")
    both = create(own, "/decisions", {**body, "count": 2})["picks"]
    assert both[0]["host"] == both[1]["host"]


def test_group_of_an_instance_that_awaits_its_host_is_not_deleted(own):
    apart = create(own, "/groups", {"name": "apart", "policy": "anti-affinity"})
    other = create(own, "/groups", {"name": "other", "policy": "affinity"})
    assert own.post("/instances", {**SMALL, "group": "apart", "name": "one", "count": 2}).status == 202
    refused = own.delete(f"/groups/{apart['uuid']}")
    assert (refused.status, refused.json["detail"].split(": ")[0]) == (
        409,
        f"server group {apart['uuid']} has 2 instances",
    )
    assert own.delete(f"/groups/{other['uuid']}").status == 204


def test_decision_of_a_deleted_group_is_shown_and_replayed(own):
    apart = create(own, "/groups", {"name": "apart", "policy": "anti-affinity"})
    granted = create(own, "/decisions", {**SMALL, "count": 2, "group": "apart"})
    refused = create(own, "/decisions", {**SMALL, "count": 9, "group": "apart"})
    for pick in granted["picks"]:
        own.delete(f"/instances/{pick['instance_uuid']}")
    assert own.delete(f"/groups/{apart['uuid']}").status == 204
    for decision in (granted, refused):
        path = f"/decisions/{decision['uuid']}"
        assert own.get(path).json == decision
        assert own.post(f"{path}/replay", {}).json["is_same"]
        assert own.get(f"{path}/why").status == 200


@pytest.mark.parametrize(
    ("path", "body"), [("/groups", {"name": "g", "policy": "affinity"}), ("/aggregates", {"name": "a"})]
)
def test_idempotency_key_creates_one_object(own, path, body):
    key = {"idempotency-key": "once"}
    first, again = (own.post(path, body, headers=key) for _ in range(2))
    assert (first.json, again.headers["idempotency-replayed"]) == (again.json, "true")
    assert own.post(path, {**body, "name": "z"}, headers=key).status == 422


def test_idempotency_key_of_a_group_is_known_to_all_processes(tmp_path):
    body, key = {"name": "g", "policy": "anti-affinity"}, {"idempotency-key": "once"}
    with roost_api(fleet(1, vcpus=4), url=tmp_path / "roost.db") as own:
        first = own.post("/groups", body, headers=key)
        small = {"flavor": {"vcpus": 1, "memory_mb": 16}, "group": "g"}
        assert (first.status, own.post("/decisions", small).status) == (201, 201)
    with roost_api(url=tmp_path / "roost.db") as own:
        again = own.post("/groups", {**body, "max_server_per_host": 1}, headers=key)
        assert (again.status, again.json, again.headers["idempotency-replayed"]) == (201, first.json, "true")
        assert again.headers["location"] == first.headers["location"]
        for other in ({"name": "h"}, {"policy": "affinity"}, {"max_server_per_host": 2}):
            assert own.post("/groups", {**body, **other}, headers=key).status == 422
        assert own.post("/groups", {**body, "uuid": first.json["uuid"]}, headers=key).status == 409
        assert len(own.get("/groups").json["groups"]) == 1


def test_pages_of_every_list_have_each_item_once():
    groups = merge_fleets(*(group(f"g{number}", "affinity") for number in range(5)))
    with roost_api(fleet(5, vcpus=4), groups) as own:
        for number in range(5):
            create(own, "/aggregates", {"name": f"a{number}"})
        for path, name in (("aggregates", "name"), ("groups", "name"), ("hosts", "host"), ("services", "host")):
            listed, cursor = [], ""
            while cursor is not None:
                page = own.get(f"/{path}?limit=2{cursor and f'&cursor={cursor}'}").json
                assert len(page[path]) <= 2
                listed += [each[name] for each in page[path]]
                cursor = page["next"]
            assert (len(listed), listed) == (5, sorted(listed))


def test_changes_are_persistent(url):
    with roost_api(fleet(2, vcpus=4), url=url) as own:
        path = f"/aggregates/{create(own, '/aggregates', {'name': 'a', 'metadata': {'ssd': 'true'}})['uuid']}"
        own.put(f"{path}/hosts/host-1")
        patch(own, "/services/host-0", {"disabled": True, "disabled_reason": "disk"})
        create(own, "/groups", {"name": "g", "policy": "soft-affinity"})
        for vcpus in (1, 2):
            own.put("/flavors/small", {"vcpus": vcpus})
        own.put("/images/debian", {"disk_format": "qcow2"})
        paths = (path, "/hosts", "/services", "/groups", "/zones", "/flavors", "/images")
        before = [own.get(each).json for each in paths]
    with roost_api(url=url) as own:
        assert [own.get(each).json for each in paths] == before


def test_two_processes_keep_all_concurrent_changes(postgres_url):
    with roost_api(fleet(1, vcpus=4), url=postgres_url) as one, roost_api(url=postgres_url) as other:
        uuids = [create(one, "/aggregates", {"name": f"a{number}"})["uuid"] for number in range(8)]
        ready = threading.Barrier(len(uuids))

        def join(at):
            ready.wait()
            return (one, other)[at % 2].put(f"/aggregates/{uuids[at]}/hosts/host-0").status

        with ThreadPoolExecutor(len(uuids)) as pool:
            assert list(pool.map(join, range(len(uuids)))) == [204] * len(uuids)
        for own in (one, other):
            assert [each["hosts"] for each in own.get("/aggregates").json["aggregates"]] == [["host-0"]] * len(uuids)


def test_concurrent_creation_of_one_name_succeeds_once(postgres_url):
    with roost_api(url=postgres_url) as one, roost_api(url=postgres_url) as other:
        ready = threading.Barrier(4)

        def make(at):
            ready.wait()
            return (one, other)[at % 2].post("/aggregates", {"name": "a"}).status

        with ThreadPoolExecutor(4) as pool:
            assert sorted(pool.map(make, range(4))) == [201, 409, 409, 409]


def test_hosts_are_selected_by_name_and_fields():
    racks = merge_fleets(host("rack7-1"), host("rack7-2"), host("rack8-1"))
    with roost_api(racks) as own:
        assert hosts_of(own, "?name=rack7-*") == ["rack7-1", "rack7-2"]
        assert hosts_of(own, "?name=RACK7-2") == ["rack7-2"]
        assert hosts_of(own, "?name=rack7-") == hosts_of(own, "?name=*7-1*") == []
        page = own.get("/hosts?name=rack*&fields=host,up&limit=2").json
        assert page["hosts"] == [{"host": name, "up": True} for name in ("rack7-1", "rack7-2")]
        rest = own.get(f"/hosts?name=rack*&fields=host&limit=2&cursor={page['next']}").json
        assert rest == {"hosts": [{"host": "rack8-1"}], "next": None}
        (with_resources,) = own.get("/hosts?name=rack8-1&fields=resources").json["hosts"]
        assert with_resources == {"resources": own.get("/hosts/rack8-1").json["resources"]}
        refused = own.get("/hosts?fields=host,facts")
        assert (refused.status, refused.json["field"]) == (400, "?fields")
        assert "'facts' is not a field: choose from host, node, uuid, zones" in refused.json["detail"]
