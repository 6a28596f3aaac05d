"""Counts of instances by host and by property of their image."""

from collections.abc import Iterable, Mapping

import msgspec
import numpy as np

from roost.engine.columns.column import Column
from roost.engine.columns.types import Amounts
from roost.errors import report_corruption
from roost.model.image import Image, present_properties

# Columns in memory, one per requested property and value; each takes 8 bytes per host.
_COLUMNS_MAX = 256

Property = tuple[str, str]  # name, text


class ImageCounts:
    """Instances by property of their image, and by host.

    Most policies do not need them, so a state builds them on first use and updates them from then on.

    Args:
        bodies: the image documents, by number; a missing one counts nothing.
        instances: image and host row of all current instances.
    """

    __slots__ = ("_bodies", "_columns", "_counts", "_properties", "_texts")

    def __init__(self, bodies: Mapping[int, bytes], instances: Iterable[tuple[int, int]]) -> None:
        self._bodies = bodies
        self._properties: dict[int, list[Property]] = {}  # by image
        self._counts: dict[Property, dict[int, int]] = {}  # host row -> instances; no zeros
        self._texts: dict[str, dict[str, None]] = {}  # name -> its values, in order of appearance
        self._columns: dict[Property, Column] = {}  # counts of requested properties
        for image_id, host_row in instances:
            self.count(image_id, host_row, 1)

    def count(self, image_id: int, host_row: int, by: int) -> None:
        """Add an instance to a host, or remove it with ``by`` -1."""
        properties = self._properties.get(image_id)
        if properties is None:
            properties = self._properties[image_id] = self._read(image_id)
        for each in properties:
            counts = self._counts.setdefault(each, {})
            self._texts.setdefault(each[0], {})[each[1]] = None
            counts[host_row] = counts.get(host_row, 0) + by
            if not counts[host_row]:
                del counts[host_row]
            column = self._columns.get(each)
            if column is not None:
                column.grow(host_row + 1)
                column.each[host_row] += by

    def forget(self, image_id: int) -> None:
        """Drop the properties of an image without instances: its number gets another document."""
        self._properties.pop(image_id, None)

    def texts(self, name: str) -> list[str]:
        """Return all values of a property seen so far."""
        return list(self._texts.get(name, ()))

    def count_by_host(self, name: str, text: str, *, hosts: int) -> Amounts:
        """Count the instances on each host with this property of their image.

        Args:
            name: the current name of the property.
            text: its value.
            hosts: the number of hosts.

        Returns:
            int64, shape (hosts,), read-only.
        """
        column = self._columns.get((name, text))
        if column is None:
            if len(self._columns) >= _COLUMNS_MAX:
                self._columns.clear()
            column = self._columns[name, text] = Column(np.int64, rows=hosts)
            for row, count in self._counts.get((name, text), {}).items():
                column.each[row] = count
        column.grow(hosts)
        view: Amounts = column.view
        return view

    def _read(self, image_id: int) -> list[Property]:
        image = read_image(self._bodies, image_id)
        return [] if image is None else list(present_properties(image.properties).items())


def read_image(bodies: Mapping[int, bytes], number: int) -> Image | None:
    """Read the image of a document; None if the number is unknown.

    Raises:
        StoreBroken: the document cannot be decoded.
    """
    body = bodies.get(number)
    if body is None:
        return None
    with report_corruption(f"image {number}"):
        return msgspec.json.decode(body, type=Image)
