"""Costs of questions: how long random questions on random fleets hold the deciding thread.

``python -m tests.attack.costs --rounds 10000`` prints a table. Each question is answered as by a server: first in the
deciding thread, within its time slice; if that is too short, as in the reader process. Times are processor times of
this thread, so other processes do not count.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from random import Random
from typing import Any

from roost.api.access.authentication import trust_headers
from roost.api.access.policy import Policy
from roost.api.asgi import Api, try_in_thread
from roost.api.http import Identity, Request, Response, TooSlow
from roost.api.placement.application import Application as PlacementApplication
from roost.api.v1.agents.agent_registry import AgentRegistry
from roost.api.v1.agents.wakeups import ENDS, Wakeups
from roost.api.v1.application import Application as OwnApplication
from roost.app import Roost
from roost.app.server_process import SLICE_S
from roost.errors import OverBudget, RoostError
from roost.machine import SystemClock
from roost.model.settings.roost_settings import Settings
from roost.placement.current import Current
from roost.placement.deciding_thread import Serving
from roost.placement.job import Task
from roost.placement.write_plan import Act
from roost.store.memory_store import MemoryStore
from tests.attack.fleets import TRAITS, cell_fleet, deep_query, forest, shared_disk
from tests.support.fleets.nested_memory_hosts import TWO_AMOUNTS
from tests.support.fleets.worlds import merge_fleets

HOLD_MS_MAX = 100.0
BUDGET_S = 0.25
# A question that is cut off reports its results and takes back its claims: within twice its budget.
BUDGET_PARTS_MAX = 2.0
_FLEET_EACH = 50  # questions
_ADMIN = Identity(user_id="admin", project_id="admin", roles=frozenset({"admin"}))
_HEADERS = {"content-type": "application/json", "openstack-api-version": "placement 1.39"}
Question = tuple[str, str, str, Any]  # kind, method, URL, body


@dataclass
class Costs:
    """The highest costs of one kind of question."""

    questions: int = 0
    passed_on: int = 0  # too expensive for the deciding thread
    cut: int = 0  # ended by the budget
    hold_ms: float = 0.0
    budget_parts: float = 0.0
    worst: str = ""

    def hold(self, duration_s: float, question: Question) -> None:
        """Note how long the deciding thread was held."""
        if 1000 * duration_s > self.hold_ms:
            self.hold_ms, self.worst = 1000 * duration_s, f"{question[1]} {question[2]} {json.dumps(question[3])}"[:300]


class RandomFleet:
    """A random fleet, with both APIs over it."""

    def __init__(self, random: Random) -> None:
        parts = [
            shared_disk(hosts=random.randint(1, 8), disk_gb=random.choice((10, 10_000, 10_000_000))),
            cell_fleet(hosts=random.randint(1, 20), cells=random.randint(1, 12)),
            forest(
                hosts=random.randint(1, 20),
                cells=random.randint(1, 8),
                functions=random.randint(0, 3),
                seed=random.randint(0, 99),
            ),
        ]
        self.current = Current(MemoryStore(), clock=SystemClock())
        self.roost = Roost(self.current.store, Settings(), current=self.current)
        self.roost.install(merge_fleets(*random.sample(parts, random.randint(1, 3))))
        serving = Serving(self.current, has_thread=False)
        agents = AgentRegistry(serving, Wakeups(1), ends=Wakeups(1, topic=ENDS), clock=SystemClock())
        self.own: Api = OwnApplication(self.roost, agents=agents, identify=trust_headers)
        self.placement: Api = PlacementApplication(identify=trust_headers, allows=Policy().allows)
        self.decisions: list[str] = []


def generate_questions(random: Random, fleet: RandomFleet) -> Iterator[Question]:
    """Yield random questions endlessly."""
    while True:
        kind = random.choice(("candidates", "candidates", "capacity", "dry run", "decision", "why"))
        if kind == "candidates":
            yield kind, "GET", f"/allocation_candidates?{_query(random)}", None
        elif kind == "capacity":
            by = random.sample(("zone", "aggregate", "host"), random.randint(0, 3))
            yield kind, "POST", "/capacity", {"request": _document(random), "by": by}
        elif kind == "why":
            if fleet.decisions:
                yield kind, "GET", f"/decisions/{random.choice(fleet.decisions)}/why", None
        else:
            count = random.choice((1, 1, 1, 7, 100, 1_000 if kind == "decision" else 100_000))
            yield kind, "POST", "/decisions", {**_document(random), "count": count, "dry_run": kind == "dry run"}


def _query(random: Random) -> str:
    if random.random() < 0.5:
        return deep_query(random.randint(0, 10**6))
    groups = [f"resources_{at}=CUSTOM_VF:{random.randint(1, 2)}" for at in range(random.randint(1, 10))]
    groups += [f"resources_m{at}=MEMORY_MB:{random.randint(1, 10**5)}" for at in range(random.randint(0, 8))]
    more = ["resources=DISK_GB:1"] if random.random() < 0.5 else []
    more += [f"limit={random.choice((1, 1000))}"] if random.random() < 0.5 else []
    return "&".join([*groups, *more, f"group_policy={random.choice(('none', 'isolate'))}"])


def _document(random: Random) -> dict[str, Any]:
    flavor: dict[str, Any] = {
        "name": f"f{random.randint(0, 9)}",
        "vcpus": random.choice((0, 1, 4)),
        "memory_mb": random.choice((0, 1, 512)),
        "root_gb": random.choice((0, 0, 1)),
    }
    document: dict[str, Any] = {"flavor": flavor}
    if random.random() < 0.5:
        sizes = (random.randint(1, 9) for _ in range(random.randint(1, 8)))
        name = random.choice(("MEMORY_MB", "CUSTOM_VF", "CUSTOM_CELL"))
        document["resource_groups"] = [
            {
                "suffix": f"_{at}",
                "resources": {name: size},
                "required": [[random.choice(TRAITS)]] * random.randint(0, 1),
            }
            for at, size in enumerate(sizes)
        ]
        flavor["memory_mb"] = 0 if name == "MEMORY_MB" else flavor["memory_mb"]
    if random.random() < 0.2:
        document["resource_groups"] = TWO_AMOUNTS["resource_groups"]
    if random.random() < 0.2:
        many = random.choice((10, 1_000))
        key, value = random.choice((("trait:CUSTOM_%d", "forbidden"), ("x%d", "s== 1"), ("capabilities:y%d", ">= 2")))
        flavor["extra_specs"] = {key % at: value for at in range(many)}
    if random.random() < 0.1:
        document["hints"] = {"query": json.dumps(["and", *[[">=", "$free_ram_mb", at] for at in range(500)]])}
    return document


def answer_question(fleet: RandomFleet, question: Question, costs: Costs) -> None:
    """Answer a question like a server, and note its costs."""
    kind, method, url, body = question
    path, _, query = url.partition("?")
    api = fleet.placement if kind == "candidates" else fleet.own
    request = Request(
        method=method,
        path=path,
        query_string=query,
        headers=_HEADERS,
        identity=_ADMIN,
        body=b"" if body is None else json.dumps(body).encode(),
    )
    costs.questions += 1
    task = api.enter(request)
    if isinstance(task, Response):
        return
    if kind == "decision":
        _decide(fleet, question, _measure(lambda: task(fleet.current), costs, question), costs)
    elif request.work == "past" or not _is_answered_in_thread(fleet, question, try_in_thread(request, task), costs):
        costs.passed_on += 1
        start_s = time.thread_time()
        slow = partial(OverBudget, "the question", seconds=BUDGET_S, limit="none")
        try:
            request.with_budget(BUDGET_S, task, too_slow=slow)(fleet.current)
        except OverBudget:
            costs.cut += 1
        except RoostError:
            pass
        costs.budget_parts = max(costs.budget_parts, (time.thread_time() - start_s) / BUDGET_S)


def _measure(act: Callable[[], Any], costs: Costs, question: Question) -> Any:
    start_s = time.thread_time()
    try:
        return act()
    except RoostError:
        return None
    finally:
        costs.hold(time.thread_time() - start_s, question)


def _is_answered_in_thread(fleet: RandomFleet, question: Question, task: Task[Response], costs: Costs) -> bool:
    try:
        _measure(lambda: task(fleet.current), costs, question)
    except TooSlow:
        return False
    return True


def _decide(fleet: RandomFleet, question: Question, act: object, costs: Costs) -> None:
    """Decide in time slices, like the deciding thread; the limit does not apply to requests for several instances."""
    if not isinstance(act, Act):
        return
    decision_request = act.deed
    for _ in range(round(Settings().scheduler.search_budget_s / SLICE_S)):
        start_s = time.thread_time()
        (result,) = fleet.roost.scheduler.work([decision_request], slice_s=SLICE_S)
        if question[3]["count"] == 1:
            costs.hold(time.thread_time() - start_s, question)
        if not isinstance(result, OverBudget):
            if not isinstance(result, RoostError) and result is not None:
                fleet.decisions.append(result.uuid)
            return
    costs.cut += 1


def main() -> int:
    """Answer random questions, and print one line for each kind."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    random = Random(arguments.seed)
    costs_by_kind: dict[str, Costs] = {}
    for number in range(arguments.rounds):
        if number % _FLEET_EACH == 0:
            fleet = RandomFleet(random)
            questions = generate_questions(random, fleet)
        question = next(questions)
        answer_question(fleet, question, costs_by_kind.setdefault(question[0], Costs()))
    print(f"{'question':<12} {'asked':>7} {'went on':>8} {'cut':>6} {'held ms':>8} {'budgets':>8}  worst")
    for kind, costs in sorted(costs_by_kind.items()):
        print(
            f"{kind:<12} {costs.questions:>7,} {costs.passed_on:>8,} {costs.cut:>6,} {costs.hold_ms:>8.1f} "
            f"{costs.budget_parts:>8.2f}  {costs.worst[:90]}"
        )
    return int(
        any(each.hold_ms > HOLD_MS_MAX or each.budget_parts > BUDGET_PARTS_MAX for each in costs_by_kind.values())
    )


if __name__ == "__main__":
    sys.exit(main())
