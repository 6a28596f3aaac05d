"""Bodies are read only from authorized clients, and only within the memory limit."""

from collections.abc import Iterator

import pytest

from tests.attack.bodies import bodies_of_clients, bodies_of_strangers, many_values
from tests.attack.server import Target, target

BODIES_MAX_MIB = 64


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    settings = f"bodies_max_bytes = {BODIES_MAX_MIB * 2**20}"
    with target(tmp_path_factory.mktemp("bodies"), settings=settings) as target_server:
        yield target_server


def test_unauthenticated_bodies_use_no_memory(server: Target) -> None:
    figures = bodies_of_strangers(server, connections=20)
    assert figures.statuses == {401: 20}
    assert figures.rss_growth_mib < 64
    assert figures.observations.problems == ()
    assert figures.observations.decisions > 0


def test_authenticated_bodies_use_no_more_memory_than_the_limit(server: Target) -> None:
    figures = bodies_of_clients(server, connections=20)
    assert figures.statuses[503] > 0
    assert figures.statuses[0] <= BODIES_MAX_MIB // 15
    assert figures.rss_growth_mib < 2 * BODIES_MAX_MIB
    assert figures.observations.problems == ()


@pytest.mark.parametrize("value", [b"1", b"{}", b"[]"])
def test_many_small_values_are_refused_before_they_are_decoded(server: Target, value: bytes) -> None:
    figures = many_values(server, value=value)
    assert figures.statuses == {413: 1}
    assert figures.rss_growth_mib < 64  # the body in pieces, and as a whole
    assert figures.observations.problems == ()


def test_v1_document_is_limited_to_one_mebibyte(server: Target) -> None:
    status, _, body = server.served.ask("POST", "/v1/decisions", b" " * (2**20 + 1), headers=server.headers)
    assert (status, "1,048,576 bytes" in body["detail"]) == (413, True)


def test_agent_reports_may_exceed_one_mebibyte(server: Target) -> None:
    text = b'{"agents": [], "wait_s": 0}' + b" " * 2**20
    status, _, body = server.served.ask("POST", "/v1/orders/poll", text, headers=server.headers)
    assert (status, "agents" in body["detail"]) == (400, True)  # The body was read: it names no agent.


def test_unauthenticated_request_is_refused_before_its_body_is_read(server: Target) -> None:
    for path in ("/v1/decisions", "/placement/resource_providers"):
        assert server.served.ask("POST", path, b" " * (20 * 2**20), headers={})[0] == 401
