"""The intended differences, each with its reason and the condition under which it excuses a fault."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

Json = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """One intended difference."""

    name: str
    reason: str
    rules: frozenset[str]  # classes of the reference
    theirs: frozenset[object]  # errors or verdicts of the reference; not used for "consumed"
    ours: Callable[[Any], bool]
    where: Callable[[Any, Json], bool] = lambda *_: True  # a fault and its whole pair
    what: str = "passes"

    def excuses(self, fault: Any, pair: Json) -> bool:
        """Return whether this difference explains a fault."""
        if fault.what != self.what or fault.rule not in self.rules:
            return False
        is_theirs = self.what == "consumed" or fault.theirs in self.theirs
        return is_theirs and self.ours(fault.ours) and self.where(fault, pair)


def _refuses(ours: Any) -> bool:
    return ours is False


def _host(fault: Any, pair: Json) -> Json:
    found: Json = pair["hosts"][fault.at]
    return found


def _shares_service(fault: Any, pair: Json) -> bool:
    names = [host["host"] for host in pair["hosts"]]
    return fault.way == "columns" and names.count(_host(fault, pair)["host"]) > 1


def _has_several_values(fault: Any, pair: Json) -> bool:
    """Return whether the host's aggregates have two values or more for a key of the flavor's extra specs."""
    wished = {key.removeprefix("aggregate_instance_extra_specs:") for key in pair["request"]["flavor"]["extra_specs"]}
    tables = [pair["aggregates"].get(name, {}) for name in _host(fault, pair)["aggregates"]]
    values = [{part for table in tables if key in table for part in table[key].split(",")} for key in wished]
    return fault.rule == "AggregateInstanceExtraSpecsFilter" and any(len(each) > 1 for each in values)


def _wishes(pair: Json) -> list[str]:
    return [wanted.strip() for wanted in pair["request"]["flavor"]["extra_specs"].values()]


def _sizes(fault: Any, pair: Json) -> set[tuple[int, ...]]:
    """Return the page sizes of each cell of the host, if the request has a kind of page size."""
    is_kind = pair["request"]["flavor"]["extra_specs"].get("hw:mem_page_size") in ("any", "large", "small")
    cells = _host(fault, pair)["numa_cells"] if is_kind else ()
    return {tuple(pages["size_kb"] for pages in cell["mempages"]) for cell in cells}


def _may_use_several_page_sizes(fault: Any, pair: Json) -> bool:
    return len(_host(fault, pair)["numa_cells"]) > 1 and any(_sizes(fault, pair))


def _has_cells_with_other_pages(fault: Any, pair: Json) -> bool:
    return len(_sizes(fault, pair)) > 1


def _lacks_pages(fault: Any, pair: Json) -> bool:
    return not all(cell["mempages"] for cell in _host(fault, pair)["numa_cells"])


_OPERATORS = frozenset({"ComputeCapabilitiesFilter", "AggregateInstanceExtraSpecsFilter"})
_NETWORK = frozenset({"SimpleCIDRAffinityFilter"})
_QUERY = frozenset({"JsonFilter"})
_CELLS = frozenset({"NUMATopologyFilter"})

DIFFERENCES: tuple[Difference, ...] = (
    Difference(
        name="no number where one is wanted",
        reason="in the reference a numeric operator on a text fails the whole request; in Roost the value does not "
        "match, which refuses the host unless another value of its aggregates matches",
        rules=_OPERATORS,
        theirs=frozenset({"ValueError"}),
        ours=lambda ours: isinstance(ours, bool),
        where=lambda fault, pair: fault.ours is False or _has_several_values(fault, pair),
    ),
    Difference(
        name="<or> without a value",
        reason="it fails the request in the reference; in Roost it names no value, so no host matches",
        rules=_OPERATORS,
        theirs=frozenset({"IndexError"}),
        ours=_refuses,
        where=lambda _, pair: "<or>" in _wishes(pair),
    ),
    Difference(
        name="hints that name no network",
        reason="an invalid address or prefix length fails the request in the reference; in Roost it refuses all hosts",
        rules=_NETWORK,
        theirs=frozenset({"AddrFormatError", "ValueError"}),
        ours=_refuses,
    ),
    Difference(
        name="a host without an address",
        reason="it fails the request in the reference; in Roost it is in no network",
        rules=_NETWORK,
        theirs=frozenset({"TypeError", "ValueError"}),
        ours=_refuses,
        where=lambda fault, pair: not _host(fault, pair)["host_ip"],
    ),
    Difference(
        name="a host that says nothing of its processor",
        reason="it fails a request for physical address bits in the reference; in Roost unknown bits refuse no host",
        rules=frozenset({"ImagePropertiesFilter"}),
        theirs=frozenset({"AttributeError"}),
        ours=lambda _: True,
        where=lambda fault, pair: not _host(fault, pair)["cpu_info"],
    ),
    Difference(
        name="affinity among the nodes of one service",
        reason="in Roost members share a node; in the reference they share the name of a service",
        rules=frozenset({"ServerGroupAffinityFilter"}),
        theirs=frozenset({True}),
        ours=_refuses,
        where=_shares_service,
    ),
    Difference(
        name="a query that is no expression",
        reason="it fails the request in the reference with an internal error; in Roost the error has the reason",
        rules=_QUERY,
        theirs=frozenset({"KeyError", "TypeError", "AttributeError", "IndexError"}),
        ours=lambda ours: str(ours).startswith("BadRequest: the hint query="),
    ),
    Difference(
        name="pages of no certain size",
        reason="the reference keeps the size that fitted on one cell for other cells, which may lack it; "
        "Roost checks the pages of every cell of the host",
        rules=_CELLS,
        theirs=frozenset({False}),
        ours=lambda ours: ours is True,
        where=_may_use_several_page_sizes,
    ),
    Difference(
        name="pages of a size that another cell has",
        reason="the reference keeps the size that fitted on one cell for other cells, also for a cell with only that "
        "size and thus without large pages; Roost requires large pages of that cell too",
        rules=_CELLS,
        theirs=frozenset({True}),
        ours=_refuses,
        where=_has_cells_with_other_pages,
    ),
    Difference(
        name="pages of one size for all instances",
        reason="the reference keeps the size that fitted on one cell for the next instances of the request; Roost "
        "checks each cell for pages of the requested kind",
        rules=_CELLS,
        theirs=frozenset(),
        ours=bool,
        where=_may_use_several_page_sizes,
        what="consumed",
    ),
    Difference(
        name="instances on cells without pages",
        reason="the reference fails to count the pages of an instance on a cell without pages, and the next instance "
        "gets the resources of the first one again; Roost has no pages to count, and counts the rest",
        rules=_CELLS,
        theirs=frozenset(),
        ours=bool,
        where=_lacks_pages,
        what="consumed",
    ),
    Difference(
        name="a query that compares what has no order",
        reason="it fails the request in the reference; in Roost it refuses the hosts on which it fails",
        rules=_QUERY,
        theirs=frozenset({"TypeError"}),
        ours=_refuses,
    ),
)
