"""Differences that are meant: each with its reason, and the condition under which it excuses a fault."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One difference that is meant."""

    name: str
    reason: str
    rules: frozenset[str]  # classes of the reference
    theirs: frozenset[object]  # errors, or verdicts; of what is consumed it does not matter
    ours: Callable[[Any], bool]
    where: Callable[[Any, Json], bool] = lambda *_: True  # a fault and its whole pair
    what: str = "passes"

    def excuses(self, fault: Any, pair: Json) -> bool:
        """Return whether it is this difference that a fault shows."""
        if fault.what != self.what or fault.rule not in self.rules:
            return False
        is_theirs = self.what == "consumed" or fault.theirs in self.theirs
        return is_theirs and self.ours(fault.ours) and self.where(fault, pair)


def _refuses(ours: Any) -> bool:
    return ours is False


def _host(fault: Any, pair: Json) -> Json:
    found: Json = pair["hosts"][fault.at]
    return found


def _shares_its_service(fault: Any, pair: Json) -> bool:
    names = [host["host"] for host in pair["hosts"]]
    return fault.way == "columns" and names.count(_host(fault, pair)["host"]) > 1


def _has_several_values(fault: Any, pair: Json) -> bool:
    """Return whether aggregates give the host two values or more for a key that the flavor has a wish for."""
    wished = {key.removeprefix("aggregate_instance_extra_specs:") for key in pair["request"]["flavor"]["extra_specs"]}
    tables = [pair["aggregates"].get(name, {}) for name in _host(fault, pair)["aggregates"]]
    values = [{part for table in tables if key in table for part in table[key].split(",")} for key in wished]
    return fault.rule == "AggregateInstanceExtraSpecsFilter" and any(len(each) > 1 for each in values)


def _wishes(pair: Json) -> list[str]:
    return [wanted.strip() for wanted in pair["request"]["flavor"]["extra_specs"].values()]


def _sizes(fault: Any, pair: Json) -> set[tuple[int, ...]]:
    """Return the sizes of pages that the cells of the host have, where the request wants pages of a kind."""
    is_kind = pair["request"]["flavor"]["extra_specs"].get("hw:mem_page_size") in ("any", "large", "small")
    cells = _host(fault, pair)["numa_cells"] if is_kind else ()
    return {tuple(pages["size_kb"] for pages in cell["mempages"]) for cell in cells}


def _may_have_pages_of_several_sizes(fault: Any, pair: Json) -> bool:
    return len(_host(fault, pair)["numa_cells"]) > 1 and any(_sizes(fault, pair))


def _has_cells_with_other_pages(fault: Any, pair: Json) -> bool:
    return len(_sizes(fault, pair)) > 1


def _tells_no_pages(fault: Any, pair: Json) -> bool:
    return not all(cell["mempages"] for cell in _host(fault, pair)["numa_cells"])


_OPERATORS = frozenset({"ComputeCapabilitiesFilter", "AggregateInstanceExtraSpecsFilter"})
_NETWORK = frozenset({"SimpleCIDRAffinityFilter"})
_QUERY = frozenset({"JsonFilter"})
_CELLS = frozenset({"NUMATopologyFilter"})

DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        name="no number where one is wanted",
        reason="an operator of numbers that meets a text ends the whole request there; here that value does not match, "
        "which refuses the host unless another of its aggregates' values does",
        rules=_OPERATORS,
        theirs=frozenset({"ValueError"}),
        ours=lambda ours: isinstance(ours, bool),
        where=lambda fault, pair: fault.ours is False or _has_several_values(fault, pair),
    ),
    Difference(
        name="<or> without a value",
        reason="it ends the request there; here it names no value, so no host has it",
        rules=_OPERATORS,
        theirs=frozenset({"IndexError"}),
        ours=_refuses,
        where=lambda _, pair: "<or>" in _wishes(pair),
    ),
    Difference(
        name="hints that name no network",
        reason="an address or a length that cannot be read ends the request there; here it refuses all hosts",
        rules=_NETWORK,
        theirs=frozenset({"AddrFormatError", "ValueError"}),
        ours=_refuses,
    ),
    Difference(
        name="a host without an address",
        reason="it ends the request there; here it is in no network",
        rules=_NETWORK,
        theirs=frozenset({"TypeError", "ValueError"}),
        ours=_refuses,
        where=lambda fault, pair: not _host(fault, pair)["host_ip"],
    ),
    Difference(
        name="a host that says nothing of its processor",
        reason="it ends a request for physical address bits there; here its bits are unknown, which refuses nobody",
        rules=frozenset({"ImagePropertiesFilter"}),
        theirs=frozenset({"AttributeError"}),
        ours=lambda _: True,
        where=lambda fault, pair: not _host(fault, pair)["cpu_info"],
    ),
    Difference(
        name="affinity among the nodes of one service",
        reason="members share a node here, which is what an instance runs on; there they share the service's name",
        rules=frozenset({"ServerGroupAffinityFilter"}),
        theirs=frozenset({True}),
        ours=_refuses,
        where=_shares_its_service,
    ),
    Difference(
        name="a query that is no expression",
        reason="it ends the request there with an internal error; here with one that says what is wrong with it",
        rules=_QUERY,
        theirs=frozenset({"KeyError", "TypeError", "AttributeError", "IndexError"}),
        ours=lambda ours: str(ours).startswith("BadRequest: the hint query="),
    ),
    Difference(
        name="pages of no certain size",
        reason="a size that fitted on one cell is kept there while other cells are tried, which may have none of it; "
        "here every cell of the host is asked for such pages",
        rules=_CELLS,
        theirs=frozenset({False}),
        ours=lambda ours: ours is True,
        where=_may_have_pages_of_several_sizes,
    ),
    Difference(
        name="pages of a size that another cell has",
        reason="a size that fitted on one cell is kept there while other cells are tried, of which one has that size "
        "alone, and so none that is large; here that cell is asked for large pages, too",
        rules=_CELLS,
        theirs=frozenset({True}),
        ours=_refuses,
        where=_has_cells_with_other_pages,
    ),
    Difference(
        name="pages of one size for all instances",
        reason="the size that fitted on one cell is that of the next instances of the request there; here each cell is "
        "asked for pages of the kind that is wanted",
        rules=_CELLS,
        theirs=frozenset(),
        ours=bool,
        where=_may_have_pages_of_several_sizes,
        what="consumed",
    ),
    Difference(
        name="instances on cells without pages",
        reason="counting the pages of an instance on a cell that tells none fails there, and the next instance finds "
        "all that the first one took; here there are none to count, and the rest is counted",
        rules=_CELLS,
        theirs=frozenset(),
        ours=bool,
        where=_tells_no_pages,
        what="consumed",
    ),
    Difference(
        name="a query that compares what has no order",
        reason="it ends the request there; here it refuses the hosts on which it does so",
        rules=_QUERY,
        theirs=frozenset({"TypeError"}),
        ours=_refuses,
    ),
)
