"""Roles in the /v1 API: every route for every role, and without a token."""

import re

import pytest

from roost.api.v1.routes import OPEN_OPERATIONS, TABLE
from roost.simulator.stable_uuids import uuid_of
from tests.support.fleets.products import fleet
from tests.support.servers.in_process_api import READS_BY_POST, roost_api

ROUTES = sorted((path, method) for path, methods in TABLE.items() for method in methods)
# Routes for all clients with a valid token.
CLIENT_ROUTES = {("/session", "POST"), ("/session", "GET")}
# Paths for administrators and services alone.
ADMIN_READS = {"/settings", "/plans/make-room", "/plans/consolidate", "/plans/drain", "/plans/balance"}
# Paths that readers of a project may read.
READER_PATHS = {
    "/changes",
    "/instances",
    "/instances/{id}",
    "/decisions",
    "/decisions/{id}",
    "/decisions/{id}/why",
    "/decisions/{id}/replay",
    "/operations",
    "/operations/{id}",
    "/groups",
    "/groups/{uuid}",
    "/flavors",
    "/flavors/{name}",
    "/images",
    "/images/{name}",
}
AGENT_ROUTES = {
    ("/agents/{host}", "PUT"),
    ("/agents/{host}", "DELETE"),
    ("/agents/{host}/nodes/{node}", "PUT"),
    ("/orders/poll", "POST"),
    ("/orders/{id}/answer", "POST"),
    ("/instances/{id}", "DELETE"),
    ("/decisions/{id}/next", "POST"),
    ("/agents/{host}/standings", "POST"),
}


@pytest.fixture(scope="module")
def own():
    with roost_api(fleet(1, vcpus=4)) as client:
        yield client


def status_for(own, path, method, **headers):
    """Return the status of a request without a body, about objects that do not exist."""
    target = re.sub(r"{\w+}", uuid_of("nothing"), path)
    return own.ask(method, target, headers=headers).status


@pytest.mark.parametrize(("path", "method"), ROUTES)
def test_route_is_open_to_its_roles_and_closed_to_others(own, path, method):
    is_read = method == "GET" or path in READS_BY_POST
    statuses = {
        role: status_for(own, path, method, **{"x-auth-token": "bob", "x-roles": role})
        for role in ("admin", "service", "agent", "observer", "reader", "member")
    }
    refused = {role for role, status in statuses.items() if status == 403}
    is_open = (method, path) in OPEN_OPERATIONS
    expected = {"member"}
    if is_open or (path, method) in CLIENT_ROUTES:
        expected = set()
    elif not is_read:
        expected |= {"observer", "reader"} if (path, method) in AGENT_ROUTES else {"observer", "reader", "agent"}
    elif path in ADMIN_READS:
        expected |= {"observer", "reader", "agent"}
    elif path not in READER_PATHS:
        expected |= {"reader"}
    if path == "/instances/{id}/reset":
        expected |= {"service"}
    assert refused == expected, statuses
    assert all(status not in {401, 405} and status < 500 for status in statuses.values()), statuses
    assert status_for(own, path, method, **{"x-auth-token": ""}) == (204 if is_open else 401)


def test_only_the_end_of_a_session_needs_no_authentication():
    assert {("DELETE", "/session")} == OPEN_OPERATIONS


def test_refusal_names_the_roles_that_would_be_enough(own):
    reader = {"x-auth-token": "bob", "x-roles": "reader"}
    for path, roles in (("/hosts", ["observer", "agent", "service", "admin"]), ("/instances", [])):
        assert own.ask("GET", path, headers=reader).json.get("needed_roles", []) == roles
    refused = own.ask("DELETE", "/flavors/small", headers=reader)
    assert (refused.status, refused.json["needed_roles"]) == (403, ["service", "admin"])
    assert refused.json["detail"].endswith("; your roles: reader; it needs the role service or admin")
