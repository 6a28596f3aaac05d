"""Building in tests: a builder that fails as it is told, and small fleets in cells."""

from collections.abc import Callable, Iterable, Mapping

from roost.app import build_conductor
from roost.model.fleet import Fleet
from roost.model.host import HostFacts
from roost.model.names import uuid_bytes
from roost.simulator.seeded_random import SeededRandom
from tests.support.fleets.worlds import host, joined


class ScriptedBuilder:
    """Builds on every host, except where its script has an error for it.

    ``meanwhile`` is done during every build, before it ends.
    """

    def __init__(self, script: Mapping[str, Iterable[Exception]] | None = None) -> None:
        self._script = {name: list(errors) for name, errors in (script or {}).items()}
        self.tried: list[tuple[str, str]] = []  # instance and host, in order
        self.seen: list[tuple[object, str, str, object]] = []  # what was said of each
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
    """Return conductors over a Roost whose chance is not that of the Roost."""
    return build_conductor(roost, builder, cells=cells, random=SeededRandom(seed))


def ladder(count: int, *, vcpus: int = 1, cell: str = "", failed: int = 0) -> Fleet:
    """Return hosts h0, h1, …, each better than the next."""
    return joined(
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


def held(state, uuid):
    """Return the node of an instance with all that it holds, or None."""
    holder = state.holders.get(uuid_bytes(uuid))
    if holder is None:
        return None
    return state.hosts.nodes[state.hosts.row_of_id[holder.instance.host_id]], sorted(holder.takes)


def failed_builds(state):
    """Return the failed builds of each host, by node."""
    return dict(zip(state.hosts.nodes, (facts.failed_builds for facts in state.hosts.facts), strict=True))


def tries(outcome):
    """Return the attempts of an outcome: host, claim, and what went wrong."""
    return [(each.host, each.claim, each.problem) for each in outcome.attempts]
