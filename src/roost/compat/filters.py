"""Counterpart of ``nova.filters``: runs a list of filters over a list of objects."""

import inspect
import logging
from collections.abc import Iterable, Iterator
from typing import Any

_log = logging.getLogger(__name__)


class BaseFilter:
    """A filter over objects of any kind."""

    run_filter_once_per_request = False

    def _filter_one(self, obj: Any, spec_obj: Any) -> bool:
        """Return whether an object passes."""
        return True

    def filter_all(self, filter_obj_list: Iterable[Any], spec_obj: Any) -> Iterable[Any] | None:
        """Yield the objects that pass; None stops all filtering."""
        return (obj for obj in filter_obj_list if self._filter_one(obj, spec_obj))

    def run_filter_for_index(self, index: int) -> bool:
        """Return whether the filter runs for the instance with this index in a request."""
        return not (self.run_filter_once_per_request and index > 0)


class BaseFilterHandler:
    """Runs filters, given as instances or classes."""

    def get_filtered_objects(
        self, filters: Iterable[Any], objs: Iterable[Any], spec_obj: Any, index: int = 0
    ) -> list[Any] | None:
        """Return the objects that pass all filters for the instance with this index.

        Returns:
            In the order of ``objs``; None if a filter stopped the filtering.
        """
        remaining = list(objs)
        survivors: list[tuple[str, int]] = []
        start = len(remaining)
        for each in _instantiate(filters):
            if not each.run_filter_for_index(index):
                continue
            name = type(each).__name__
            passed = each.filter_all(remaining, spec_obj)
            if passed is None:
                _log.debug("filter %s stopped the filtering", name)
                return None
            remaining = list(passed)
            survivors.append((name, len(remaining)))
            if not remaining:
                _log.info("filter %s returned 0 hosts; hosts left of %d after each filter: %s", name, start, survivors)
                break
            _log.debug("filter %s returned %d host(s)", name, len(remaining))
        return remaining

    get_filted_objects = get_filtered_objects


def _instantiate(filters: Iterable[Any]) -> Iterator[Any]:
    for entry in filters:
        yield entry() if inspect.isclass(entry) else entry
