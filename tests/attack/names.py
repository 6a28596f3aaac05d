"""Attacks by the token of one host's agent on what all hosts share."""

import http.client
from collections import Counter

from tests.attack.bystander import standing_by
from tests.attack.figures import Figures
from tests.attack.server import Target

_VERSION = {"openstack-api-version": "placement 1.39"}


def names_of_an_agent(target: Target, *, count: int = 2_000) -> Figures:
    """Create resource classes and traits without end; their numbers are for all hosts."""
    statuses: Counter[int] = Counter()
    with standing_by(target) as bystander:
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
        seen=bystander.seen(),
        rss_growth_mib=growth_mib,
    )


def _create(connection: http.client.HTTPConnection, kind: str, number: int, who: dict[str, str]) -> int:
    connection.request("PUT", f"/placement/{kind}/CUSTOM_X_{number}", headers={**who, **_VERSION})
    response = connection.getresponse()
    response.read()
    return response.status
