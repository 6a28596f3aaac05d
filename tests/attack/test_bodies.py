"""Bodies are read only of those who may send them, and not more than the memory is for."""

from collections.abc import Iterator

import pytest

from tests.attack.bodies import bodies_of_clients, bodies_of_strangers, many_values
from tests.attack.server import Target, target

BODIES_MAX_MIB = 64


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    settings = f"bodies_max_bytes = {BODIES_MAX_MIB * 2**20}"
    with target(tmp_path_factory.mktemp("bodies"), settings=settings) as found:
        yield found


def test_bodies_of_strangers_take_no_memory(server: Target) -> None:
    figures = bodies_of_strangers(server, connections=20)
    assert figures.statuses == {401: 20}
    assert figures.rss_growth_mib < 64
    assert figures.seen.problems == ()
    assert figures.seen.decisions > 0


def test_bodies_of_clients_take_no_more_memory_than_the_limit(server: Target) -> None:
    figures = bodies_of_clients(server, connections=20)
    assert figures.statuses[503] > 0
    assert figures.statuses[0] <= BODIES_MAX_MIB // 15
    assert figures.rss_growth_mib < 2 * BODIES_MAX_MIB
    assert figures.seen.problems == ()


@pytest.mark.parametrize("value", [b"1", b"{}", b"[]"])
def test_many_small_values_are_refused_before_they_are_decoded(server: Target, value: bytes) -> None:
    figures = many_values(server, value=value)
    assert figures.statuses == {413: 1}
    assert figures.rss_growth_mib < 64  # the body in pieces, and as a whole
    assert figures.seen.problems == ()


def test_a_document_below_v1_has_at_most_one_mebibyte(server: Target) -> None:
    status, _, body = server.served.ask("POST", "/v1/decisions", b" " * (2**20 + 1), headers=server.headers)
    assert (status, "1,048,576 bytes" in body["detail"]) == (413, True)


def test_what_an_agent_reports_may_be_larger(server: Target) -> None:
    text = b'{"agents": [], "wait_s": 0}' + b" " * 2**20
    status, _, body = server.served.ask("POST", "/v1/orders/poll", text, headers=server.headers)
    assert (status, "agents" in body["detail"]) == (400, True)  # It was read: it names no agent.


def test_a_stranger_is_refused_before_the_body_is_looked_at(server: Target) -> None:
    for path in ("/v1/decisions", "/placement/resource_providers"):
        assert server.served.ask("POST", path, b" " * (20 * 2**20), headers={})[0] == 401
