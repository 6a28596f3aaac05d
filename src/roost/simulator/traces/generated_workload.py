"""Workloads from a seed: equal recipes give equal workloads, byte for byte.

The fleet and the requests have separate random generators, so more requests do not change the fleet.
"""

import random

import msgspec

from roost.errors import BadRequest
from roost.model.group import ServerGroup
from roost.simulator.traces.generated_fleet import generate_fleet
from roost.simulator.traces.generated_requests import MIXES, generate_stays
from roost.simulator.workload import Options, Workload, build_workload

_HOSTS_MAX = 1_000_000
_REQUESTS_MAX = 10_000_000


class Recipe(msgspec.Struct, frozen=True, kw_only=True):
    """The parameters of a generated workload.

    ``mix`` is ``mixed`` (plain and special flavors, zones, groups, multiple instances) or ``few`` (four
    plain flavors only).
    """

    hosts: int = 10_000
    requests: int = 25_000
    seed: int = 1
    mix: str = "mixed"

    def __post_init__(self) -> None:
        for name, maximum in (("hosts", _HOSTS_MAX), ("requests", _REQUESTS_MAX)):
            if not 1 <= getattr(self, name) <= maximum:
                raise BadRequest(f"there must be 1..{maximum:,} {name}, got {getattr(self, name)}")
        if self.mix not in MIXES:
            raise BadRequest(f"the mix must be one of {', '.join(MIXES)}, got {self.mix!r}")


def generate(recipe: Recipe, options: Options) -> Workload:
    """Generate a workload.

    Raises:
        BadRequest: the options describe hosts.
    """
    if options.hosts:
        raise BadRequest("a generated workload has its own hosts: leave --hosts out")
    groups: list[ServerGroup] = []
    requests_rng = random.Random(f"{recipe.seed}/requests")
    stays = list(generate_stays(recipe.requests, MIXES[recipe.mix], rng=requests_rng, groups=groups))
    fleet = generate_fleet(recipe.hosts, rng=random.Random(f"{recipe.seed}/fleet"), groups=groups)
    name = f"generated-{recipe.mix}-{recipe.hosts}x{recipe.requests}-seed{recipe.seed}"
    return build_workload(stays, name=name, fleet=fleet, options=options)
