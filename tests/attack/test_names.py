"""The token of an agent leaves the others enough names."""

from pathlib import Path

from tests.attack.names import names_of_an_agent
from tests.attack.server import target


def test_an_agent_creates_no_more_names_than_it_may(tmp_path: Path) -> None:
    with target(tmp_path) as server:
        figures = names_of_an_agent(server, count=300)
    assert figures.statuses == {201: 2 * 256, 403: 2 * 44}
    assert figures.seen.problems == ()
