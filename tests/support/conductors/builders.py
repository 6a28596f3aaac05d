"""A builder that fails by a script, and small fleets in cells."""

from collections.abc import Callable, Iterable, Mapping

from roost.app import build_conductor
from roost.model.fleet import Fleet
from roost.model.host import HostFacts
from roost.model.names import uuid_bytes
from roost.simulator.seeded_random import SeededRandom
from tests.support.fleets.worlds import host, merge_fleets


class ScriptedBuilder:
    """Builds on every host, unless its script has an error for that host.

    ``meanwhile`` is called during every build.
    """

    def __init__(self, script: Mapping[str, Iterable[Exception]] | None = None) -> None:
        self._script = {name: list(errors) for name, errors in (script or {}).items()}
        self.tried: list[tuple[str, str]] = []  # (instance, host) pairs in order
        self.seen: list[tuple[object, str, str, object]] = []  # the arguments of each build
        self.running: dict[str, str] = {}  # instance -> host
        self.meanwhile: Callable[[str, str], object] = lambda *_: None

    def build(self, instance, *, host, node, limits):
        """See ``roost.ports.Builder``."""
        self.tried.append((instance.uuid, host))
        self.seen.append((instance, host, node, limits))
        self.meanwhile(instance.uuid, host)
        errors = self._script.get(host)
        if errors:
            raise errors.pop(0)
        self.running[instance.uuid] = host


def conductor(roost, builder, *, cells=None, seed=7):
    """Return conductors of a Roost, with a random generator of their own."""
    return build_conductor(roost, builder, cells=cells, random=SeededRandom(seed))


def ladder(count: int, *, vcpus: int = 1, cell: str = "", failed: int = 0) -> Fleet:
    """Return hosts h0, h1, …, each with more memory than the next."""
    return merge_fleets(
        *(
            host(
                f"h{number}",
                VCPU=vcpus,
                MEMORY_MB=1000 - number,
                facts=HostFacts(cell=cell, failed_builds=failed),
            )
            for number in range(count)
        )
    )


def allocations_of(state, uuid):
    """Return the node of an instance and its allocations, or None without allocations."""
    holder = state.holders.get(uuid_bytes(uuid))
    if holder is None:
        return None
    return state.hosts.nodes[state.hosts.row_of_id[holder.instance.host_id]], sorted(holder.takes)


def failed_builds(state):
    """Return the count of failed builds by node."""
    return dict(zip(state.hosts.nodes, (facts.failed_builds for facts in state.hosts.facts), strict=True))


def attempts_of(outcome):
    """Return the attempts of an outcome: host, claim and problem."""
    return [(each.host, each.claim, each.problem) for each in outcome.attempts]
