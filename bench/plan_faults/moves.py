"""Plans and drains of a run: requests, samples of the operations under way, and the moves as they were recorded."""

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import msgspec

from bench.plan_faults.limits import Limits, Move, Sample
from tests.support.conductors.mortal_cluster import Cluster, Reaper

_SAMPLE_S = 0.1
_MOVE_FIELDS = ("number", "instance_uuid", "source", "target", "after")


class Applied(msgspec.Struct, frozen=True, kw_only=True):
    """An applied plan, or a drain."""

    name: str
    operation: str  # uuid
    limits: Limits
    # Source and target of each instance in a plan; the target is empty if it is offloaded. A drain has none.
    routes: dict[str, tuple[str, str]] = {}


def apply_plan(reaper: Reaper, name: str, question: Mapping[str, object], *, limits: Limits) -> Applied | None:
    """Request a plan while nothing is killed, and apply it; return None if it has no moves.

    Args:
        reaper: of the cluster where it happens.
        name: of the plan; its first word is the kind of plan.
        question: the body of the request for the plan.
        limits: of the moves.
    """
    cluster = reaper.cluster
    with reaper.rest():
        status, plan = cluster.asked("POST", f"/v1/plans/{name.partition(' ')[0]}", question)
    assert status == 200, plan
    if not plan["moves"]:
        return None
    moves = [{field: move[field] for field in _MOVE_FIELDS} for move in plan["moves"]]
    body = {"moves": moves} | msgspec.to_builtins(limits)
    status, answer = cluster.asked("POST", "/v1/plans/apply", body, key=name)
    assert status == 202, answer
    routes = {move["instance_uuid"]: (move["source"], move["target"]) for move in moves}
    return Applied(name=name, operation=answer["operation"], limits=limits, routes=routes)


def drain(cluster: Cluster, name: str, host: str, *, at_once: int) -> Applied | None:
    """Drain a host; return None if its agent is silent just now."""
    status, answer = cluster.asked("POST", f"/v1/hosts/{host}/drain", {"at_once": at_once}, key=f"{name} {host}")
    if status == 409:
        return None
    assert status == 202, answer
    return Applied(name=name, operation=answer["operation"], limits=Limits(at_once=at_once))


def wait_for(cluster: Cluster, applied: Applied, *, end_s: float) -> bool:
    """Wait until an operation ends, or until a time of the monotonic clock; return whether it ended."""
    while time.monotonic() < end_s:
        if cluster.asked("GET", f"/v1/operations/{applied.operation}?wait_s=5")[1]["outcome"] != "open":
            return True
    return False


class Sampler:
    """Reads the list of open operations again and again.

    Args:
        cluster: the servers, which may be killed meanwhile.
    """

    def __init__(self, cluster: Cluster) -> None:
        self._cluster, self._is_over = cluster, threading.Event()
        self._errors: list[BaseException] = []
        self.samples: list[Sample] = []

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Take samples during the block; an error of this thread is raised at the end."""
        thread = threading.Thread(target=self._run)
        thread.start()
        try:
            yield
        finally:
            self._is_over.set()
            thread.join()
        assert not self._errors, self._errors

    def _run(self) -> None:
        try:
            while not self._is_over.wait(_SAMPLE_S):
                rows = self._cluster.listed("operations", "&outcome=open")
                self.samples.append(frozenset(each["uuid"] for each in rows))
        except BaseException as error:  # noqa: BLE001  # ``at_work`` reports it at the end.
            self._errors.append(error)


def read_moves(operations: list[dict[str, Any]], applied: Applied, groups: dict[str, str]) -> list[Move]:
    """Return the moves of a plan or a drain, from the list of all operations."""
    return [
        Move(
            operation=each["uuid"],
            instance=each["instance"],
            hosts=frozenset(host for host in applied.routes.get(each["instance"], ()) if host),
            group=groups.get(each["instance"], ""),
            begun_s=each["created_at_s"],
            ended_s=None if each["outcome"] == "open" else each["changed_at_s"],
        )
        for each in operations
        if each["parent"] == applied.operation
    ]
