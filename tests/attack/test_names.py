"""An agent token cannot use up the names of all hosts."""

from pathlib import Path

from tests.attack.names import names_of_an_agent
from tests.attack.server import target


def test_agent_cannot_create_more_names_than_its_quota(tmp_path: Path) -> None:
    with target(tmp_path) as server:
        figures = names_of_an_agent(server, count=300)
    assert figures.statuses == {201: 2 * 256, 403: 2 * 44}
    assert figures.observations.problems == ()
