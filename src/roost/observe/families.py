"""Declarations of metric families: name, meaning, and the bound of each label.

``declare_*`` functions register a family in ``FAMILIES``, from which the reference in ``docs/monitoring.md`` is
generated.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from prometheus_client import Counter, Gauge, Histogram

# The part of the product that a family describes. A process shows the areas that it serves.
Area = Literal[
    "requests", "events", "thread", "decisions", "operations", "agents", "fleet", "database", "nova", "process"
]
AREAS: Mapping[Area, str] = {
    "requests": "Requests of clients. A conductor process does not show them.",
    "events": "Readers of events, and the webhook.",
    "thread": "The deciding thread, its commits, and its view of the database.",
    "decisions": "Decisions. Placement alone (`roost placement`) does not decide, so it does not show them.",
    "operations": "The conductor: operations on instances, builds and orders.",
    "agents": "Agents of hosts.",
    "fleet": "The whole fleet. Each process surveys it in the background.",
    "database": "The content and the size of the database. Each process counts it in the background.",
    "nova": "The message queue of Nova. Only a scheduler of Nova shows them.",
    "process": "The process itself.",
}
# How several workers of one server are combined into one value.
Mode = Literal["livesum", "livemin", "livemax", "max"]


class Label(NamedTuple):
    """A label, and the bound of the number of its values."""

    name: str
    bound: str


class Family(NamedTuple):
    """A metric family."""

    name: str  # as exported; counters end with ``_total``
    kind: Literal["counter", "gauge", "histogram"]
    text: str
    area: Area
    labels: tuple[Label, ...] = ()

    @property
    def base_name(self) -> str:
        """The name without the suffix of counters."""
        return self.name.removesuffix("_total")

    @property
    def sample_names(self) -> tuple[str, ...]:
        """The names of its samples."""
        if self.kind == "histogram":
            return tuple(f"{self.name}{suffix}" for suffix in ("_bucket", "_sum", "_count"))
        return (self.name,)


FAMILIES: dict[str, Family] = {}  # by base name


def declare_counter(name: str, text: str, *, area: Area, labels: Sequence[Label] = ()) -> Counter:
    """Declare a counter; ``name`` ends with ``_total``."""
    family = _register(Family(name, "counter", text, area, tuple(labels)))
    return Counter(family.base_name, text, [label.name for label in labels])


def declare_gauge(name: str, text: str, *, area: Area, mode: Mode, labels: Sequence[Label] = ()) -> Gauge:
    """Declare a gauge."""
    _register(Family(name, "gauge", text, area, tuple(labels)))
    return Gauge(name, text, [label.name for label in labels], multiprocess_mode=mode)


def declare_histogram(
    name: str, text: str, *, area: Area, buckets: Sequence[float], labels: Sequence[Label] = ()
) -> Histogram:
    """Declare a histogram."""
    _register(Family(name, "histogram", text, area, tuple(labels)))
    return Histogram(name, text, [label.name for label in labels], buckets=buckets)


def declare_survey(name: str, text: str, *, area: Area, labels: Sequence[Label] = ()) -> Family:
    """Declare a gauge whose values a survey publishes together; see ``survey_board``."""
    return _register(Family(name, "gauge", text, area, tuple(labels)))


def _register(family: Family) -> Family:
    assert (family.kind == "counter") == family.name.endswith("_total"), family.name
    assert family.base_name not in FAMILIES, f"{family.name} is declared twice"
    FAMILIES[family.base_name] = family
    return family
