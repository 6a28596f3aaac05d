"""A server that believes everybody answers no page of another site."""

from collections.abc import Iterator

import pytest

from tests.attack.pages import cross_site, rebinding
from tests.attack.server import Target, target


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    with target(tmp_path_factory.mktemp("pages"), has_tokens=False) as found:
        yield found


def test_a_page_whose_name_came_to_mean_this_machine_is_refused(server: Target) -> None:
    figures = rebinding(server)
    assert figures.statuses == {421: 3}
    assert figures.seen.problems == ()


def test_a_page_of_another_site_is_refused(server: Target) -> None:
    assert cross_site(server).statuses == {403: 3}
