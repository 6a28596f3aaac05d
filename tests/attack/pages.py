"""Attacks from a web page that an operator visits: its requests come from the operator's machine."""

import http.client
from collections import Counter
from collections.abc import Mapping

from tests.attack.bystander import run_bystander
from tests.attack.figures import Figures
from tests.attack.server import Target

_DECISION = b'{"flavor": {"vcpus": 1}}'


def rebinding(target: Target) -> Figures:
    """Read and decide as a page whose name now resolves to 127.0.0.1 (DNS rebinding)."""
    name = f"evil.example:{target.port}"
    return _ask(target, "DNS rebinding", {"host": name, "origin": f"http://{name}", "x-auth-token": "admin"})


def cross_site(target: Target) -> Figures:
    """Read and decide as a page of another site, with the server's own name."""
    own = {"host": f"localhost:{target.port}", "origin": "http://evil.example", "x-auth-token": "admin"}
    return _ask(target, "another site", own | {"sec-fetch-site": "cross-site"})


def _ask(target: Target, name: str, headers: Mapping[str, str]) -> Figures:
    statuses: Counter[int] = Counter()
    requests = (
        ("GET", "/v1/hosts", None),
        ("POST", "/v1/decisions", _DECISION),
        ("GET", "/placement/resource_providers", None),
    )
    with run_bystander(target) as bystander:
        for method, path, body in requests:
            connection = http.client.HTTPConnection(target.host, target.port, timeout=30)
            connection.request(method, path, body=body, headers={**headers, "content-type": "application/json"})
            statuses[connection.getresponse().status] += 1
            connection.close()
        growth_mib = target.rss_growth_mib()
    return Figures(
        name=name,
        requests=len(requests),
        statuses=statuses,
        observations=bystander.observations(),
        rss_growth_mib=growth_mib,
    )
