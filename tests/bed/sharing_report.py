"""What became of servers, claims and groups after several schedulers shared the queue."""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Literal

import msgspec

from tests.bed import tables

Policy = Literal["affinity", "anti-affinity"]


class SharedServer(msgspec.Struct, frozen=True, kw_only=True):
    """A server at the end."""

    name: str
    status: str
    host: str
    fault: str
    claimed_hosts: tuple[str, ...]  # hosts with an allocation of it
    decider: str  # roost, or nova: the last scheduler that chose a host for it; empty: none did
    group: str = ""


class SharingReport(msgspec.Struct, frozen=True, kw_only=True):
    """The numbers of servers, decisions and pairs, and everything that went wrong."""

    statuses: dict[str, int]
    deciders: dict[str, int]
    calls: dict[str, int]  # answered calls by process of Roost
    pairs: dict[str, int]  # pairs against the policy of their group, by their schedulers
    faults: dict[str, int]
    problems: tuple[str, ...]

    def table(self) -> str:
        """Return the report as text."""
        rows = [
            *(["servers", status, count] for status, count in self.statuses.items()),
            *(["hosts chosen by", decider or "none", count] for decider, count in self.deciders.items()),
            *(["calls answered by", process, count] for process, count in self.calls.items()),
            *(["pairs against a policy", pair, count] for pair, count in self.pairs.items()),
            *(["faults", fault[:100], count] for fault, count in self.faults.items()),
        ]
        return tables.render(["sharing the queue", "", "number"], rows)


def summarize(
    servers: list[SharedServer],
    policies: Mapping[str, Policy],
    *,
    orphans: list[str],
    calls: Mapping[str, int],
    refusals: Mapping[str, str] | None = None,
) -> SharingReport:
    """Return the report.

    Args:
        policies: by group.
        orphans: consumers with allocations that are no server.
        calls: answered calls by process of Roost.
        refusals: messages of Nova's API by name of the server; the quotas are unlimited, so none is expected.
    """
    problems = [problem for server in servers for problem in _problems_of(server)]
    problems += [f"{name} was refused: {message}" for name, message in (refusals or {}).items()]
    problems += [f"consumer {each} is no server and has allocations" for each in orphans]
    pairs = [*_pairs_against(servers, policies)]
    problems += [
        f"{one.name} and {other.name} break the policy {policies[one.group]}: {one.host or 'none'}, {other.host}"
        for one, other in pairs
        if one.decider == other.decider == "roost"
    ]
    problems += [f"{name} answered no call" for name, count in calls.items() if not count]
    return SharingReport(
        statuses=_count(server.status for server in servers),
        deciders=_count(server.decider for server in servers),
        calls=dict(calls),
        pairs=_count(" and ".join(sorted((one.decider, other.decider))) for one, other in pairs),
        faults=_count(server.fault for server in servers if server.fault),
        problems=tuple(problems),
    )


def _problems_of(server: SharedServer) -> Iterator[str]:
    if server.status not in {"ACTIVE", "ERROR"}:
        yield f"{server.name} is lost: {server.status}"
    if server.status == "ERROR" and not server.fault:
        yield f"{server.name} is in ERROR without a fault"
    if server.status == "ACTIVE" and server.claimed_hosts != (server.host,):
        yield f"{server.name} is on {server.host}, and has allocations on {', '.join(server.claimed_hosts) or 'none'}"
    if server.status == "ERROR" and server.claimed_hosts:
        yield f"{server.name} is in ERROR, and has allocations on {', '.join(server.claimed_hosts)}"


def _pairs_against(
    servers: list[SharedServer], policies: Mapping[str, Policy]
) -> Iterator[tuple[SharedServer, SharedServer]]:
    """Yield the pairs of running members whose hosts are against the policy of their group."""
    for group, policy in policies.items():
        members = [server for server in servers if server.group == group and server.status == "ACTIVE"]
        for one, other in combinations(members, 2):
            if (one.host == other.host) == (policy == "anti-affinity"):
                yield one, other


def _count(values: Iterator[str]) -> dict[str, int]:
    return dict(sorted(Counter(values).items()))
