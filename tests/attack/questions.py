"""Attacks with questions: small requests that mean much work."""

import http.client
import json
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.attack.bystander import standing_by
from tests.attack.figures import Figures
from tests.attack.fleets import deep_query
from tests.attack.server import Target
from tests.support.fleets.several_ways import TWO_AMOUNTS

_PATIENCE_S = 60.0
_MANY = 1_000  # as many as a request may have
_SEEDS = 10  # of queries; the search for some of them does not end within seconds


@dataclass(frozen=True, kw_only=True)
class Question:
    """One request of an attacker.

    Args:
        leaves_after_s: when the client closes its connection; None: it waits for the answer.
    """

    method: str
    path: str
    body: object = None
    leaves_after_s: float | None = None


def shared_capacity() -> Question:
    """Count what hosts hold that borrow from one disk."""
    flavor = {"name": "f", "vcpus": 0, "memory_mb": 1, "root_gb": 1}
    return Question(method="POST", path="/v1/capacity", body={"request": {"flavor": flavor}, "limit": 10_000_000})


def celled_capacity() -> Question:
    """Count what hosts hold in several ways, in every scope."""
    body = {"request": TWO_AMOUNTS, "by": ["zone", "aggregate", "host"], "limit": 10_000_000}
    return Question(method="POST", path="/v1/capacity", body=body)


def deep_candidates(*, leaves_after_s: float | None = None) -> list[Question]:
    """Search deep trees for groups that are bound to subtrees."""
    paths = (f"/placement/allocation_candidates?{deep_query(seed)}" for seed in range(_SEEDS))
    return [Question(method="GET", path=path, leaves_after_s=leaves_after_s) for path in paths]


def many_candidates() -> Question:
    """Ask for all of billions of candidates."""
    groups = "&".join(f"resources_{number}=CUSTOM_VF:1" for number in range(10))
    return Question(method="GET", path=f"/placement/allocation_candidates?{groups}&group_policy=none")


def many_traits() -> Question:
    """Require as many traits as a request may."""
    specs = {f"trait:CUSTOM_{number}": "required" for number in range(_MANY)}
    return _capacity(specs)


def many_specs() -> Question:
    """Name as many capabilities as a request may."""
    specs = {f"x{number}": "s== 1" for number in range(_MANY)}
    return _capacity(specs)


def _capacity(extra_specs: dict[str, str]) -> Question:
    body = {"request": {"flavor": {"name": "f", "vcpus": 1, "extra_specs": extra_specs}}}
    return Question(method="POST", path="/v1/capacity", body=body)


def dry_runs() -> Question:
    """Decide many instances, in several ways each, without claiming them."""
    return Question(method="POST", path="/v1/decisions", body={**TWO_AMOUNTS, "count": 100_000, "dry_run": True})


def ask_again_and_again(
    target: Target,
    name: str,
    questions: Sequence[Question],
    *,
    headers: Mapping[str, str],
    clients: int = 4,
    duration_s: float = 5.0,
) -> Figures:
    """Let clients ask the questions in turn, again and again, each time on a new connection."""
    statuses: Counter[int] = Counter()
    requests: list[int] = []
    with standing_by(target) as bystander:
        until_s = time.monotonic() + duration_s
        threads = [
            threading.Thread(target=_ask_until, args=(target, questions, headers, until_s, statuses, requests))
            for _ in range(clients)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        growth_mib = target.rss_growth_mib()
    return Figures(
        name=name, requests=sum(requests), statuses=statuses, seen=bystander.seen(), rss_growth_mib=growth_mib
    )


def _ask_until(
    target: Target,
    questions: Sequence[Question],
    headers: Mapping[str, str],
    until_s: float,
    statuses: Counter[int],
    requests: list[int],
) -> None:
    bodies = [None if each.body is None else json.dumps(each.body) for each in questions]
    count = 0
    while time.monotonic() < until_s:
        question, body = questions[count % len(questions)], bodies[count % len(questions)]
        patience_s = question.leaves_after_s or _PATIENCE_S
        connection = http.client.HTTPConnection(target.host, target.port, timeout=patience_s)
        try:
            connection.request(
                question.method, question.path, body=body, headers={**headers, "content-type": "application/json"}
            )
            answer = connection.getresponse()
            answer.read()
            statuses[answer.status] += 1
        except (OSError, http.client.HTTPException):
            statuses[0] += 1  # It left, or nobody answered.
        finally:
            connection.close()
        count += 1
    requests.append(count)
