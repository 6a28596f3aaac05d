"""A server without authentication refuses requests from pages of other sites."""

from collections.abc import Iterator

import pytest

from tests.attack.pages import cross_site, rebinding
from tests.attack.server import Target, target


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with target(tmp_path_factory.mktemp("pages"), has_tokens=False) as target_server:
        yield target_server


def test_page_with_a_rebound_dns_name_is_refused(server: Target) -> None:
    figures = rebinding(server)
    assert figures.statuses == {421: 3}
    assert figures.observations.problems == ()


def test_page_of_another_site_is_refused(server: Target) -> None:
    assert cross_site(server).statuses == {403: 3}
