"""Attacks with questions: small requests that need much work."""

import http.client
import json
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tests.attack.bystander import run_bystander
from tests.attack.figures import Figures
from tests.attack.fleets import deep_query
from tests.attack.server import Target
from tests.support.fleets.nested_memory_hosts import TWO_AMOUNTS

_PATIENCE_S = 60.0
_MANY = 1_000  # the maximum in a request
_SEEDS = 10  # of queries; some of their searches do not end within seconds


@dataclass(frozen=True, kw_only=True)
class Question:
    """One request of an attacker.

    Args:
        leaves_after_s: Time until the client closes its connection; None: it waits for the response.
    """

    method: str
    path: str
    body: object = None
    leaves_after_s: float | None = None


def shared_capacity() -> Question:
    """Count the capacity of hosts with one shared disk."""
    flavor = {"name": "f", "vcpus": 0, "memory_mb": 1, "root_gb": 1}
    return Question(method="POST", path="/v1/capacity", body={"request": {"flavor": flavor}, "limit": 10_000_000})


def cell_capacity() -> Question:
    """Count capacity where requests fit in several ways, in every scope."""
    body = {"request": TWO_AMOUNTS, "by": ["zone", "aggregate", "host"], "limit": 10_000_000}
    return Question(method="POST", path="/v1/capacity", body=body)


def deep_candidates(*, leaves_after_s: float | None = None) -> list[Question]:
    """Search deep trees for groups with subtree conditions."""
    paths = (f"/placement/allocation_candidates?{deep_query(seed)}" for seed in range(_SEEDS))
    return [Question(method="GET", path=path, leaves_after_s=leaves_after_s) for path in paths]


def many_candidates() -> Question:
    """Request billions of candidates."""
    groups = "&".join(f"resources_{number}=CUSTOM_VF:1" for number in range(10))
    return Question(method="GET", path=f"/placement/allocation_candidates?{groups}&group_policy=none")


def many_traits() -> Question:
    """Require the maximum number of traits."""
    specs = {f"trait:CUSTOM_{number}": "required" for number in range(_MANY)}
    return _capacity(specs)


def many_specs() -> Question:
    """Name the maximum number of capabilities."""
    specs = {f"x{number}": "s== 1" for number in range(_MANY)}
    return _capacity(specs)


def _capacity(extra_specs: dict[str, str]) -> Question:
    body = {"request": {"flavor": {"name": "f", "vcpus": 1, "extra_specs": extra_specs}}}
    return Question(method="POST", path="/v1/capacity", body=body)


def dry_runs() -> Question:
    """Decide on many instances with several candidates each, without claims."""
    return Question(method="POST", path="/v1/decisions", body={**TWO_AMOUNTS, "count": 100_000, "dry_run": True})


def repeat_questions(
    target: Target,
    name: str,
    questions: Sequence[Question],
    *,
    headers: Mapping[str, str],
    clients: int = 4,
    duration_s: float = 5.0,
) -> Figures:
    """Send the questions in turn from several clients until the time is over, each on a new connection."""
    statuses: Counter[int] = Counter()
    requests: list[int] = []
    with run_bystander(target) as bystander:
        end_s = time.monotonic() + duration_s
        threads = [
            threading.Thread(target=_send_until_end, args=(target, questions, headers, end_s, statuses, requests))
            for _ in range(clients)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        growth_mib = target.rss_growth_mib()
    return Figures(
        name=name,
        requests=sum(requests),
        statuses=statuses,
        observations=bystander.observations(),
        rss_growth_mib=growth_mib,
    )


def _send_until_end(
    target: Target,
    questions: Sequence[Question],
    headers: Mapping[str, str],
    end_s: float,
    statuses: Counter[int],
    requests: list[int],
) -> None:
    bodies = [None if each.body is None else json.dumps(each.body) for each in questions]
    count = 0
    while time.monotonic() < end_s:
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
            statuses[0] += 1  # It left, or there was no response.
        finally:
            connection.close()
        count += 1
    requests.append(count)
