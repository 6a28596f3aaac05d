"""Who may ask what of Roost's own API: each route for each role, and for nobody."""

import re

import pytest

from roost.api.v1.routes import TABLE
from roost.simulator.stable_uuids import uuid_of
from tests.support.fleets.products import fleet
from tests.support.servers.in_process_api import asking_own

ROUTES = sorted((path, method) for path, methods in TABLE.items() for method in methods)
READS_BY_POST = {"/decisions/{id}/replay", "/capacity"}
# Which reads are for readers of a project.
OF_READERS = {
    "/instances",
    "/instances/{id}",
    "/decisions",
    "/decisions/{id}",
    "/decisions/{id}/why",
    "/decisions/{id}/replay",
    "/operations/{id}",
    "/groups",
    "/groups/{uuid}",
    "/flavors",
    "/flavors/{name}",
    "/images",
    "/images/{name}",
}
OF_AGENTS = {
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
    with asking_own(fleet(1, vcpus=4)) as found:
        yield found


def status_for(own, path, method, **headers):
    """Return the status of a question without a body, about things that are not there."""
    target = re.sub(r"{\w+}", uuid_of("nothing"), path)
    return own.ask(method, target, headers=headers).status


@pytest.mark.parametrize(("path", "method"), ROUTES)
def test_a_route_is_for_those_who_may_and_for_nobody_else(own, path, method):
    is_read = method == "GET" or path in READS_BY_POST
    told = {
        role: status_for(own, path, method, **{"x-auth-token": "bob", "x-roles": role})
        for role in ("admin", "service", "agent", "observer", "reader", "member")
    }
    refused = {role for role, status in told.items() if status == 403}
    expected = {"member"}
    if not is_read:
        expected |= {"observer", "reader"} if (path, method) in OF_AGENTS else {"observer", "reader", "agent"}
    elif path not in OF_READERS:
        expected |= {"reader"}
    if path == "/instances/{id}/reset":
        expected |= {"service"}
    assert refused == expected, told
    assert all(status not in {401, 405} and status < 500 for status in told.values()), told
    assert status_for(own, path, method, **{"x-auth-token": ""}) == 401
