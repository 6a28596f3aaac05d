"""Users without access to all projects see instances, decisions, groups and operations of their own only."""

import msgspec
import pytest

from roost.api.access.policy import Policy
from roost.api.v1.policies import DEFAULTS, policy_of
from roost.api.v1.routes import TABLE
from roost.model.names import uuid_text
from roost.model.work.change_memory import Drain
from roost.model.work.work_rows import Put
from roost.model.writes import Item
from roost.simulator.stable_uuids import uuid_of
from tests.api.agents import commit_rows
from tests.support.conductors.work_rows import event, operation, status
from tests.support.fleets.products import fleet
from tests.support.servers.in_process_api import roost_api
from tests.support.servers.servers import serve

SMALL = {"flavor": {"name": "small", "vcpus": 1}}
READER = {"x-auth-token": "eve", "x-roles": "reader,member", "x-project-id": "ours"}
ADMIN = {"x-auth-token": "admin"}
OWN_HOSTS_ONLY = {
    "scheduler": {"limit_tenants_to_placement_aggregate": True, "placement_aggregate_required_for_tenants": True}
}
NO_PROJECT = {"x-auth-token": ":", "x-roles": "reader"}
ALL_PROJECT_HEADERS = (
    {"x-auth-token": "admin"},
    {"x-auth-token": "eve", "x-roles": "service", "x-project-id": "ours"},
    {"x-auth-token": "eve", "x-roles": "observer", "x-project-id": "ours"},
    {"x-auth-token": "eve", "x-roles": "reader", "openstack-system-scope": "all"},
)
GROUP = uuid_of("group")
# Paths of single objects, with the method that reads them.
OBJECT_METHODS = {
    "/instances/{id}": "GET",
    "/decisions/{id}": "GET",
    "/decisions/{id}/why": "GET",
    "/decisions/{id}/replay": "POST",
    "/operations/{id}": "GET",
    "/groups/{uuid}": "GET",
}
LISTS = ("/instances", "/decisions", "/groups", "/operations", "/changes")
SHARED_PATHS = {"/flavors", "/flavors/{name}", "/images", "/images/{name}"}


class ProjectObjects:
    """Objects of two projects, by path."""

    def __init__(self, own):
        self.own = own
        self._of = {}
        own.post("/groups", {"name": "both", "policy": "anti-affinity", "uuid": GROUP})
        for project in ("ours", "theirs"):
            own.post("/groups", {"name": project, "policy": "affinity", "uuid": uuid_of("group", project)})
            decision = own.post("/decisions", {**SMALL, "project_id": project, "group": GROUP}).json
            in_group = {**SMALL, "project_id": project, "group": uuid_of("group", project)}
            own.post("/decisions", in_group)
            run = own.post("/instances", {**SMALL, "project_id": project, "name": f"run {project}"}).json
            self._of[project] = {
                "/instances/{id}": run["instances"][0],
                "/decisions/{id}": decision["uuid"],
                "/operations/{id}": run["operation"],
                "/groups/{uuid}": uuid_of("group", project),
                "claim": decision["picks"][0]["instance_uuid"],
            }

    def path(self, path, project):
        """Return the path of an object of a project."""
        noun = path.split("}")[0] + "}"
        return path.replace(noun, noun.partition("{")[0] + self._of[project][noun])

    def claim(self, project):
        """Return the instance of a project in the shared group."""
        return self._of[project]["claim"]

    def ask(self, path, project, headers):
        """Read an object of a project."""
        method = OBJECT_METHODS[path]
        return self.own.ask(method, self.path(path, project), {} if method == "POST" else None, headers=headers)


@pytest.fixture(scope="module")
def objects():
    with roost_api(fleet(4, vcpus=8)) as own:
        yield ProjectObjects(own)


def test_reader_routes_are_exactly_those_listed_here():
    rules = {
        (path, method): DEFAULTS[policy_of(method, path)]
        for path, methods in TABLE.items()
        for method, route in methods.items()
        if not route.is_open
    }
    reader_paths = {path for (path, _), rule in rules.items() if rule == "rule:reader_api"}
    assert reader_paths == {*OBJECT_METHODS, *LISTS, *SHARED_PATHS}


@pytest.mark.parametrize("path", OBJECT_METHODS)
def test_object_of_another_project_is_not_found(objects, path):
    for project in ("ours", "theirs"):
        for headers in ALL_PROJECT_HEADERS:
            assert objects.ask(path, project, headers).status == 200, (path, headers)
    assert objects.ask(path, "ours", READER).status == 200
    refused = objects.ask(path, "theirs", READER)
    url = objects.path(path, "theirs")
    nothing = objects.own.ask(OBJECT_METHODS[path], url.replace(url.split("/")[2], uuid_of("nothing")), headers=READER)
    assert refused.status == 404
    detail = refused.json["detail"].replace(url.split("/")[2], uuid_of("nothing"))
    assert (detail, refused.json["type"]) == (nothing.json["detail"], nothing.json["type"])


def test_lists_leave_out_other_projects(objects):
    ask = objects.own.ask
    for headers in ALL_PROJECT_HEADERS:
        instances = ask("GET", "/instances", headers=headers).json["instances"]
        assert {each["project_id"] for each in instances} == {"ours", "theirs"}
    instances = ask("GET", "/instances", headers=READER).json["instances"]
    assert len(instances) == 3
    assert {each["project_id"] for each in instances} == {"ours"}
    decisions = ask("GET", "/decisions", headers=READER).json["decisions"]
    own = ask("GET", "/decisions?project=ours").json["decisions"]
    assert decisions == own
    assert 0 < len(own) < len(ask("GET", "/decisions").json["decisions"])
    for noun in ("instances", "decisions"):
        assert ask("GET", f"/{noun}?project=theirs", headers=READER).json == {noun: [], "next": None}
        assert ask("GET", f"/{noun}?project=ours", headers=READER).json[noun]


def test_pages_list_only_the_own_project(objects):
    def pages(noun, headers):
        uuids, cursor = [], None
        while True:
            url = f"/{noun}?limit=1" + ("" if cursor is None else f"&cursor={cursor}")
            page = objects.own.ask("GET", url, headers=headers).json
            uuids += [each["uuid"] for each in page[noun]]
            cursor = page["next"]
            if cursor is None:
                return uuids

    for noun in ("instances", "decisions", "groups", "operations"):
        whole = objects.own.ask("GET", f"/{noun}", headers=READER).json[noun]
        assert pages(noun, READER) == [each["uuid"] for each in whole]
        assert len(pages(noun, {})) > len(whole)


def test_shared_group_shows_only_members_of_the_own_project(objects):
    whole = objects.own.get(f"/groups/{GROUP}").json
    assert (whole["member_count"], len(whole["members"])) == (2, 2)
    visible = objects.own.ask("GET", f"/groups/{GROUP}", headers=READER).json
    assert [each["instance_uuid"] for each in visible["members"]] == [objects.claim("ours")]
    listed = objects.own.ask("GET", "/groups", headers=READER).json["groups"]
    assert {each["uuid"]: each["member_count"] for each in listed} == {GROUP: 1, uuid_of("group", "ours"): 1}


def test_shapes_of_other_projects_are_not_listed():
    with roost_api(fleet(4, vcpus=8)) as own:
        for project, name in (("ours", "small"), ("theirs", "large")):
            body = {"flavor": {"name": name, "vcpus": 1}, "project_id": project}
            assert own.ask("POST", "/decisions", body).status == 201

        def names(headers):
            shapes = own.ask("GET", "/flavors?shapes=true", headers=headers).json["shapes"]
            return [each["flavor"]["name"] for each in shapes]

        assert names(READER) == ["small"]
        for headers in ALL_PROJECT_HEADERS:
            assert names(headers) == ["large", "small"]


def test_fleet_operation_is_not_visible_to_readers():
    with roost_api(fleet(2, vcpus=4)) as own:
        body = msgspec.msgpack.encode(Drain(host="host-0", instances=(), at_once=1))
        drain = operation(1, kind="drain", instance_uuid=None, body=body)
        assert own.serving.run(lambda current: current.commit([Item(writes=(), work=(Put(drain, None),))])) == [None]
        path = f"/operations/{uuid_text(drain.uuid)}"
        assert own.get(path).status == 200
        assert own.ask("GET", path, headers=READER).status == 404


@pytest.mark.parametrize("path", [*LISTS, "/groups/{uuid}"])
def test_reader_without_a_project_must_name_one(objects, path):
    refused = objects.own.ask("GET", path.replace("{uuid}", GROUP), headers=NO_PROJECT)
    assert refused.status == 403
    assert (
        refused.json["detail"]
        == "the client has no project, and policy roost:all_projects does not allow it to see all projects"
    )


@pytest.mark.parametrize("path", [path for path in OBJECT_METHODS if path != "/groups/{uuid}"])
def test_reader_without_a_project_cannot_probe_for_objects(objects, path):
    assert objects.ask(path, "theirs", NO_PROJECT).status == 404


def test_agent_sees_all_projects(objects):
    instances = objects.own.ask("GET", "/instances", headers={"x-auth-token": "a", "x-roles": "agent"}).json[
        "instances"
    ]
    assert {each["project_id"] for each in instances} == {"ours", "theirs"}


def test_details_of_hosts_and_comparisons_leave_out_other_projects():
    """A policy may show these to readers; the objects of other projects stay hidden."""
    names = ("hosts:providers", "hosts:events", "comparisons:create", "services:update")
    policy = Policy({f"roost:{name}": "rule:reader_api" for name in names}, others=DEFAULTS)
    with roost_api(fleet(2, vcpus=8), policy=policy) as own:
        decided = {
            project: own.post("/decisions", {**SMALL, "project_id": project}, headers=ADMIN).json["uuid"]
            for project in ("theirs", "ours")
        }
        commit_rows(
            own,
            *(status(number, host="host-0", project_id=project) for number, project in enumerate(decided, 1)),
            *(event(number, kind="stop.done", instance_uuid=status(number).uuid) for number in (1, 2)),
            event(3, kind="agent.ready", body=b'{"host":"host-0"}'),
        )
        for headers, is_disabled in ((ADMIN, True), (READER, False)):
            patch = {"disabled": is_disabled}
            assert own.ask("PATCH", "/services/host-0", patch, headers=headers).status == 200

        def see(headers):
            trees = [own.get(f"/hosts/host-{number}/providers", headers=headers).json for number in (0, 1)]
            holders = [holder for tree in trees for each in tree["providers"] for holder in each["holders"]]
            assert sum(each["holder_count"] for tree in trees for each in tree["providers"]) == 2
            events = own.get("/hosts/host-0/events", headers=headers).json["events"]
            sets = [{"name": "now"}, {"name": "owned", "settings": OWN_HOSTS_ONLY}]
            compared = own.post("/comparisons", {"sets": sets}, headers=headers).json
            assert (compared["requests"], compared["different"]) == (2, 2)
            shown = [each["uuid"] for each in compared["decisions"]]
            projects = sorted(each["project_id"] for each in holders)
            return projects, sorted(each["kind"] for each in events), shown, compared["first"]

        kinds = ["agent.ready", "host.disable", "host.enable", "stop.done", "stop.done"]
        assert see(ADMIN) == (["ours", "theirs"], kinds, list(decided.values()), decided["theirs"])
        assert see(READER) == (["ours"], ["agent.ready", "host.enable", "stop.done"], [decided["ours"]], "")


def test_policy_file_sets_who_sees_one_or_all_projects(tmp_path):
    (tmp_path / "policy.yaml").write_text(
        '"roost:hosts:list": "role:capacity-planner"\n"roost:all_projects": "role:auditor"\n'
        '"roost:decisions:list": "rule:reader_api or role:auditor"\n"roost:nothing:list": "@"\n'
    )
    with serve(noun="up", folder=tmp_path, settings='policy_file = "policy.yaml"') as server:
        admin = {"x-auth-token": "admin"}
        assert server.ask("POST", "/v1/decisions", {**SMALL, "project_id": "theirs"}, headers=admin)[0] == 201

        def ask(path, role):
            headers = {"x-auth-token": "eve", "x-roles": role, "x-project-id": "ours"}
            status, _, body = server.ask("GET", f"/v1/{path}", headers=headers)
            return status, body

        assert ask("hosts", "capacity-planner")[0] == 200
        status, refused = ask("hosts", "admin")
        text = "policy roost:hosts:list does not allow this; your roles: admin"
        assert (status, refused["detail"]) == (403, text)
        assert len(ask("decisions", "auditor")[1]["decisions"]) == 1
        assert ask("decisions", "admin")[1]["decisions"] == []
        server.stop()
    assert any("roost:nothing:list is not a policy" in line for line in server.errors)
