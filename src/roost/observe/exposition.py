"""The text of all metrics, for Prometheus.

If several processes serve one database, each process writes its metrics into files of a common folder. Their parent
process combines the files and serves the result.
"""

import os
from collections.abc import Collection, Iterable, Iterator
from functools import cache
from pathlib import Path

from prometheus_client import REGISTRY, CollectorRegistry, Metric, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector, mark_process_dead
from prometheus_client.registry import Collector

# Imported for their declarations: the parent of several processes uses none of them itself.
from roost.observe import fleet_metrics, metrics, work_metrics
from roost.observe.families import AREAS, FAMILIES, Area
from roost.observe.metrics_folder import FOLDER_VARIABLE
from roost.observe.survey_board import SurveyBoard

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
ALL_AREAS: frozenset[Area] = frozenset(AREAS)
# The areas of a server of Roost. Roost as nova-scheduler also has the area ``nova``.
SERVER_AREAS: frozenset[Area] = ALL_AREAS - {"nova"}
MODULES = (metrics, work_metrics, fleet_metrics)


def text(areas: Collection[Area] = ALL_AREAS) -> bytes:
    """Return the metrics of this process, or of all processes with a common folder, in the format of Prometheus."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Selection(areas))
    return generate_latest(registry)


def board() -> SurveyBoard:
    """Return the results of surveys in this process, or of all processes with a common folder."""
    return _board_in(_folder())


def forget(process: int) -> None:
    """Drop the gauges of a process; its counters stay."""
    if os.environ.get(FOLDER_VARIABLE):
        mark_process_dead(process)  # type: ignore[no-untyped-call]  # untyped in the library


@cache
def _board_in(folder: Path | None) -> SurveyBoard:
    return SurveyBoard(folder)


def _folder() -> Path | None:
    folder = os.environ.get(FOLDER_VARIABLE)
    return Path(folder) if folder and Path(folder).is_dir() else None


class _Selection(Collector):
    """The families of some areas."""

    def __init__(self, areas: Collection[Area]) -> None:
        self._areas = areas

    def describe(self) -> Iterable[Metric]:
        return ()

    def collect(self) -> Iterator[Metric]:
        yield from filter(self._is_shown, map(_tidy, _collect_all()))
        yield from filter(self._is_shown, board().collect())

    def _is_shown(self, metric: Metric) -> bool:
        family = FAMILIES.get(metric.name)
        return family is None or family.area in self._areas


def _collect_all() -> Iterator[Metric]:
    folder = _folder()
    if folder is None:
        yield from REGISTRY.collect()
        return
    registry = CollectorRegistry()
    MultiProcessCollector(registry, path=str(folder))  # type: ignore[no-untyped-call]  # untyped in the library
    yield from registry.collect()


def _tidy(metric: Metric) -> Metric:
    """Remove the times of creation, and add the description, which the files of processes lack."""
    if metric.name in FAMILIES:
        metric.documentation = FAMILIES[metric.name].text
        metric.samples = [each for each in metric.samples if not each.name.endswith("_created")]
    return metric
