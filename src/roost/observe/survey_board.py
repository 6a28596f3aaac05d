"""The results of the last surveys of the fleet and of the database, as metrics.

A survey replaces all its values at once, so that series of deleted zones disappear. Workers of one server share the
results in a file: one worker surveys, and the parent process shows the result.
"""

import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock

import msgspec
from prometheus_client import Metric
from prometheus_client.core import GaugeMetricFamily

from roost.observe.families import FAMILIES, Family

_SUFFIX = ".survey"


class Sample(msgspec.Struct, frozen=True, array_like=True):
    """One value of a family."""

    family: str
    labels: tuple[str, ...]  # in the order of the family
    value: float


def sample(family: Family, *labels: str, value: float) -> Sample:
    """Return a value of a family."""
    assert len(labels) == len(family.labels), family
    return Sample(family.name, labels, value)


class SurveyBoard:
    """Keeps the samples of each survey.

    Args:
        folder: folder of the files that several processes share; None: this process keeps the samples.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder
        self._lock = Lock()
        self._samples: dict[str, Sequence[Sample]] = {}

    def publish(self, survey: str, samples: Iterable[Sample]) -> None:
        """Replace the samples of a survey."""
        found = tuple(samples)
        if self._folder is None:
            with self._lock:
                self._samples[survey] = found
            return
        path = self._folder / f"{survey}{_SUFFIX}"
        fresh = path.with_name(f"{path.name}.{os.getpid()}")
        with suppress(OSError):  # The parent is ending, and has removed the folder.
            fresh.write_bytes(msgspec.json.encode(found))
            fresh.replace(path)

    def is_recent(self, survey: str, *, age_s: float) -> bool:
        """Return whether another process has published a survey less than some seconds ago."""
        if self._folder is None:
            return False
        try:
            modified_s = (self._folder / f"{survey}{_SUFFIX}").stat().st_mtime
        except OSError:
            return False
        return 0 <= time.time() - modified_s < age_s

    def collect(self) -> Iterator[Metric]:
        """Yield the samples of all surveys, by family."""
        by_family: dict[str, GaugeMetricFamily] = {}
        for each in self._all_samples():
            family = FAMILIES[each.family]
            metric = by_family.get(each.family)
            if metric is None:
                names = [label.name for label in family.labels]
                metric = by_family[each.family] = GaugeMetricFamily(family.name, family.text, labels=names)
            metric.add_metric(each.labels, each.value)
        yield from by_family.values()

    def _all_samples(self) -> list[Sample]:
        if self._folder is None:
            with self._lock:
                return [each for samples in self._samples.values() for each in samples]
        found: list[Sample] = []
        for path in sorted(self._folder.glob(f"*{_SUFFIX}")):
            with suppress(OSError, msgspec.MsgspecError):
                found += msgspec.json.decode(path.read_bytes(), type=list[Sample])
        return found
