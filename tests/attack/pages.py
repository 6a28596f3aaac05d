"""Attacks from a page that an operator visits: its requests come from the operator's own machine."""

import http.client
from collections import Counter
from collections.abc import Mapping

from tests.attack.bystander import standing_by
from tests.attack.figures import Figures
from tests.attack.server import Target

_DECISION = b'{"flavor": {"vcpus": 1}}'


def rebinding(target: Target) -> Figures:
    """Read and decide as a page whose name means 127.0.0.1 by now (DNS rebinding)."""
    name = f"evil.example:{target.port}"
    return _ask(target, "DNS rebinding", {"host": name, "origin": f"http://{name}", "x-auth-token": "admin"})


def cross_site(target: Target) -> Figures:
    """Read and decide as a page of another site, under the server's own name."""
    own = {"host": f"localhost:{target.port}", "origin": "http://evil.example", "x-auth-token": "admin"}
    return _ask(target, "another site", own | {"sec-fetch-site": "cross-site"})


def _ask(target: Target, name: str, headers: Mapping[str, str]) -> Figures:
    statuses: Counter[int] = Counter()
    asked = (
        ("GET", "/v1/hosts", None),
        ("POST", "/v1/decisions", _DECISION),
        ("GET", "/placement/resource_providers", None),
    )
    with standing_by(target) as bystander:
        for method, path, body in asked:
            connection = http.client.HTTPConnection(target.host, target.port, timeout=30)
            connection.request(method, path, body=body, headers={**headers, "content-type": "application/json"})
            statuses[connection.getresponse().status] += 1
            connection.close()
        growth_mib = target.rss_growth_mib()
    return Figures(name=name, requests=len(asked), statuses=statuses, seen=bystander.seen(), rss_growth_mib=growth_mib)
