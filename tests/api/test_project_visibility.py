"""Whoever may not see all projects sees instances, decisions, groups and operations of one: the own one."""

import msgspec
import pytest

from roost.api.v1.policies import DEFAULTS, policy_of
from roost.api.v1.routes import TABLE
from roost.model.names import uuid_text
from roost.model.work.change_memory import Drain
from roost.model.work.work_rows import Put
from roost.model.writes import Item
from roost.simulator.stable_uuids import uuid_of
from tests.support.conductors.work_rows import operation
from tests.support.fleets.products import fleet
from tests.support.servers.in_process_api import asking_own
from tests.support.servers.servers import serve

SMALL = {"flavor": {"name": "small", "vcpus": 1}}
READER = {"x-auth-token": "eve", "x-roles": "reader,member", "x-project-id": "ours"}
NOBODY = {"x-auth-token": ":", "x-roles": "reader"}
WIDE = (
    {"x-auth-token": "admin"},
    {"x-auth-token": "eve", "x-roles": "service", "x-project-id": "ours"},
    {"x-auth-token": "eve", "x-roles": "observer", "x-project-id": "ours"},
    {"x-auth-token": "eve", "x-roles": "reader", "openstack-system-scope": "all"},
)
GROUP = uuid_of("group")
# Each answer about one thing, by what it is about.
ONE = {
    "/instances/{id}": "GET",
    "/decisions/{id}": "GET",
    "/decisions/{id}/why": "GET",
    "/decisions/{id}/replay": "POST",
    "/operations/{id}": "GET",
    "/groups/{uuid}": "GET",
}
LISTS = ("/instances", "/decisions", "/groups")
FOR_ALL = {"/flavors", "/flavors/{name}", "/images", "/images/{name}"}


class Things:
    """Things of two projects: for each path what is asked of it."""

    def __init__(self, own):
        self.own = own
        self._of = {}
        own.post("/groups", {"name": "both", "policy": "anti-affinity", "uuid": GROUP})
        for project in ("ours", "theirs"):
            own.post("/groups", {"name": project, "policy": "affinity", "uuid": uuid_of("group", project)})
            claimed = own.post("/decisions", {**SMALL, "project_id": project, "group": GROUP}).json
            in_group = {**SMALL, "project_id": project, "group": uuid_of("group", project)}
            own.post("/decisions", in_group)
            run = own.post("/instances", {**SMALL, "project_id": project, "name": f"run {project}"}).json
            self._of[project] = {
                "/instances/{id}": run["instances"][0],
                "/decisions/{id}": claimed["uuid"],
                "/operations/{id}": run["operation"],
                "/groups/{uuid}": uuid_of("group", project),
                "claim": claimed["picks"][0]["instance_uuid"],
            }

    def path(self, path, project):
        """Return the path of a thing of a project."""
        noun = path.split("}")[0] + "}"
        return path.replace(noun, noun.partition("{")[0] + self._of[project][noun])

    def claim(self, project):
        """Return the instance that a project has in the group of both."""
        return self._of[project]["claim"]

    def ask(self, path, project, headers):
        """Ask about a thing of a project."""
        method = ONE[path]
        return self.own.ask(method, self.path(path, project), {} if method == "POST" else None, headers=headers)


@pytest.fixture(scope="module")
def things():
    with asking_own(fleet(4, vcpus=8)) as own:
        yield Things(own)


def test_every_read_is_of_one_project_or_of_all_or_not_for_readers():
    rules = {(path, method): DEFAULTS[policy_of(method, path)] for path, methods in TABLE.items() for method in methods}
    for_readers = {path for (path, _), rule in rules.items() if rule == "rule:reader_api"}
    assert for_readers == {*ONE, *LISTS, *FOR_ALL}


@pytest.mark.parametrize("path", ONE)
def test_a_thing_of_another_project_is_not_there(things, path):
    for project in ("ours", "theirs"):
        for headers in WIDE:
            assert things.ask(path, project, headers).status == 200, (path, headers)
    assert things.ask(path, "ours", READER).status == 200
    refused = things.ask(path, "theirs", READER)
    asked = things.path(path, "theirs")
    nothing = things.own.ask(ONE[path], asked.replace(asked.split("/")[2], uuid_of("nothing")), headers=READER)
    assert refused.status == 404
    named = refused.json["detail"].replace(asked.split("/")[2], uuid_of("nothing"))
    assert (named, refused.json["type"]) == (nothing.json["detail"], nothing.json["type"])


def test_lists_leave_out_other_projects(things):
    ask = things.own.ask
    for headers in WIDE:
        found = ask("GET", "/instances", headers=headers).json["instances"]
        assert {each["project_id"] for each in found} == {"ours", "theirs"}
    found = ask("GET", "/instances", headers=READER).json["instances"]
    assert len(found) == 3
    assert {each["project_id"] for each in found} == {"ours"}
    decisions = ask("GET", "/decisions", headers=READER).json["decisions"]
    own = ask("GET", "/decisions?project=ours").json["decisions"]
    assert decisions == own
    assert 0 < len(own) < len(ask("GET", "/decisions").json["decisions"])
    for noun in ("instances", "decisions"):
        assert ask("GET", f"/{noun}?project=theirs", headers=READER).json == {noun: [], "next": None}
        assert ask("GET", f"/{noun}?project=ours", headers=READER).json[noun]


def test_pages_hold_own_things_only(things):
    def pages(noun, headers):
        found, cursor = [], None
        while True:
            asked = f"/{noun}?limit=1" + ("" if cursor is None else f"&cursor={cursor}")
            page = things.own.ask("GET", asked, headers=headers).json
            found += [each["uuid"] for each in page[noun]]
            cursor = page["next"]
            if cursor is None:
                return found

    for noun in ("instances", "decisions", "groups"):
        whole = things.own.ask("GET", f"/{noun}", headers=READER).json[noun]
        assert pages(noun, READER) == [each["uuid"] for each in whole]
        assert len(pages(noun, {})) > len(whole)


def test_of_a_group_of_two_projects_each_sees_its_members(things):
    whole = things.own.get(f"/groups/{GROUP}").json
    assert (whole["member_count"], len(whole["members"])) == (2, 2)
    seen = things.own.ask("GET", f"/groups/{GROUP}", headers=READER).json
    assert [each["instance_uuid"] for each in seen["members"]] == [things.claim("ours")]
    listed = things.own.ask("GET", "/groups", headers=READER).json["groups"]
    assert {each["uuid"]: each["member_count"] for each in listed} == {GROUP: 1, uuid_of("group", "ours"): 1}


def test_the_operation_of_the_whole_fleet_is_not_for_readers():
    with asking_own(fleet(2, vcpus=4)) as own:
        body = msgspec.msgpack.encode(Drain(host="host-0", instances=(), at_once=1))
        drain = operation(1, kind="drain", instance_uuid=None, body=body)
        assert own.serving.run(lambda current: current.commit([Item(writes=(), work=(Put(drain, None),))])) == [None]
        path = f"/operations/{uuid_text(drain.uuid)}"
        assert own.get(path).status == 200
        assert own.ask("GET", path, headers=READER).status == 404


@pytest.mark.parametrize("path", [*LISTS, "/groups/{uuid}"])
def test_a_reader_of_no_project_is_told_to_name_one(things, path):
    refused = things.own.ask("GET", path.replace("{uuid}", GROUP), headers=NOBODY)
    assert refused.status == 403
    assert refused.json["detail"] == "name a project: policy roost:all_projects does not allow you to see all"


@pytest.mark.parametrize("path", [path for path in ONE if path != "/groups/{uuid}"])
def test_a_reader_of_no_project_does_not_learn_what_there_is(things, path):
    assert things.ask(path, "theirs", NOBODY).status == 404


def test_an_agent_sees_all_projects(things):
    found = things.own.ask("GET", "/instances", headers={"x-auth-token": "a", "x-roles": "agent"}).json["instances"]
    assert {each["project_id"] for each in found} == {"ours", "theirs"}


def test_a_policy_file_says_who_may_and_who_sees_all(tmp_path):
    (tmp_path / "policy.yaml").write_text(
        '"roost:hosts:list": "role:capacity-planner"\n"roost:all_projects": "role:auditor"\n'
        '"roost:decisions:list": "rule:reader_api or role:auditor"\n"roost:nothing:list": "@"\n'
    )
    with serve(noun="up", folder=tmp_path, settings='policy_file = "policy.yaml"') as server:
        admin = {"x-auth-token": "admin"}
        assert server.ask("POST", "/v1/decisions", {**SMALL, "project_id": "theirs"}, headers=admin)[0] == 201

        def ask(path, role):
            headers = {"x-auth-token": "eve", "x-roles": role, "x-project-id": "ours"}
            status, _, answered = server.ask("GET", f"/v1/{path}", headers=headers)
            return status, answered

        assert ask("hosts", "capacity-planner")[0] == 200
        status, refused = ask("hosts", "admin")
        text = "policy roost:hosts:list does not allow this; your roles: admin"
        assert (status, refused["detail"]) == (403, text)
        assert len(ask("decisions", "auditor")[1]["decisions"]) == 1
        assert ask("decisions", "admin")[1]["decisions"] == []
        server.stop()
    assert any("roost:nothing:list is not a policy" in line for line in server.errors)
