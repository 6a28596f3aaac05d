"""Differences that are meant: each with its reason, and the condition under which it excuses a fault."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]
_OPERATORS = ("ComputeCapabilitiesFilter", "AggregateInstanceExtraSpecsFilter")
_NETWORK = "SimpleCIDRAffinityFilter"


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One difference that is meant."""

    name: str
    reason: str
    excuses: Callable[[Any, Json], bool]  # a fault and its whole pair


DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        name="no number where one is wanted",
        reason="an operator of numbers that meets a text ends the whole request there; here it refuses that host alone",
        excuses=lambda fault, _: _refuses(fault, _OPERATORS, "ValueError"),
    ),
    Difference(
        name="<or> without a value",
        reason="the same of <or> with nothing after it",
        excuses=lambda fault, pair: _refuses(fault, _OPERATORS, "IndexError") and "<or>" in _wishes(pair),
    ),
    Difference(
        name="hints that name no network",
        reason="an address or a length that cannot be read ends the request there; here it refuses all hosts",
        excuses=lambda fault, _: _refuses(fault, (_NETWORK,), "AddrFormatError", "ValueError"),
    ),
    Difference(
        name="a host without an address",
        reason="it ends the request there; here it is in no network",
        excuses=lambda fault, pair: (
            _refuses(fault, (_NETWORK,), "TypeError", "ValueError") and not pair["hosts"][fault.at]["host_ip"]
        ),
    ),
    Difference(
        name="a host that says nothing of its processor",
        reason="it ends a request for physical address bits there; here its bits are unknown, which refuses nobody",
        excuses=lambda fault, pair: (
            fault.rule == "ImagePropertiesFilter"
            and fault.theirs == "AttributeError"
            and not pair["hosts"][fault.at]["cpu_info"]
        ),
    ),
    Difference(
        name="affinity among the nodes of one service",
        reason="members share a node here, which is what an instance runs on; there they share the service's name",
        excuses=lambda fault, pair: (
            fault.rule == "ServerGroupAffinityFilter"
            and (fault.way, fault.theirs, fault.ours) == ("columns", True, False)
            and [host["host"] for host in pair["hosts"]].count(pair["hosts"][fault.at]["host"]) > 1
        ),
    ),
)


def _refuses(fault: Any, rules: tuple[str, ...], *errors: str) -> bool:
    """Say whether a filter that fails there refuses the host here."""
    return fault.rule in rules and fault.theirs in errors and fault.ours is False


def _wishes(pair: Json) -> list[str]:
    return [wanted.strip() for wanted in pair["request"]["flavor"]["extra_specs"].values()]
