"""Attacks with the token of a host's agent on names that all hosts share."""

import http.client
from collections import Counter

from tests.attack.bystander import run_bystander
from tests.attack.figures import Figures
from tests.attack.server import Target

_VERSION = {"openstack-api-version": "placement 1.39"}


def names_of_an_agent(target: Target, *, count: int = 2_000) -> Figures:
    """Create resource classes and traits endlessly; all hosts share their numbers."""
    statuses: Counter[int] = Counter()
    with run_bystander(target) as bystander:
        connection = http.client.HTTPConnection(target.host, target.port, timeout=30)
        for number in range(count):
            for kind in ("resource_classes", "traits"):
                statuses[_create(connection, kind, number, target.agent)] += 1
        growth_mib = target.rss_growth_mib()
        assert _create(connection, "resource_classes", count, target.headers) == 201, "nobody can create a class"
        connection.close()
    return Figures(
        name="names without end",
        requests=2 * count,
        statuses=statuses,
        observations=bystander.observations(),
        rss_growth_mib=growth_mib,
    )


def _create(connection: http.client.HTTPConnection, kind: str, number: int, headers: dict[str, str]) -> int:
    connection.request("PUT", f"/placement/{kind}/CUSTOM_X_{number}", headers={**headers, **_VERSION})
    response = connection.getresponse()
    response.read()
    return response.status
