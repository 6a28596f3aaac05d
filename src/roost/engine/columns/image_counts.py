"""Which hosts have instances of images with some property, and how many."""

from collections.abc import Iterable, Mapping

import msgspec
import numpy as np

from roost.engine.columns.column import Column
from roost.engine.columns.types import Amounts
from roost.errors import report_corruption
from roost.model.image import Image, present_properties

# Columns kept at once, one a property and text that requests have; each takes 8 bytes a host.
_COLUMNS_MAX = 256

Property = tuple[str, str]  # name, text


class ImageCounts:
    """Instances by property of their image, and by host.

    Most policies do not ask, so a state makes them when somebody first does, and keeps them up to date from then on.

    Args:
        bodies: the image documents, by number; one that is not there counts nothing.
        instances: image and host row of all instances as they are now.
    """

    __slots__ = ("_bodies", "_columns", "_counts", "_properties", "_texts")

    def __init__(self, bodies: Mapping[int, bytes], instances: Iterable[tuple[int, int]]) -> None:
        self._bodies = bodies
        self._properties: dict[int, list[Property]] = {}  # of the images that were counted
        self._counts: dict[Property, dict[int, int]] = {}  # host row -> instances, none of 0
        self._texts: dict[str, dict[str, None]] = {}  # name -> the texts that were counted, in order
        self._columns: dict[Property, Column] = {}  # the same of those that were asked for
        for image_id, host_row in instances:
            self.count(image_id, host_row, 1)

    def count(self, image_id: int, host_row: int, by: int) -> None:
        """Note that an instance came to a host, or with ``by`` -1 left it."""
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

    def texts(self, name: str) -> list[str]:
        """Return the values that a property was seen to have."""
        return list(self._texts.get(name, ()))

    def count_by_host(self, name: str, text: str, *, hosts: int) -> Amounts:
        """Return how many instances on each host have an image with this property.

        Args:
            name: of the property, its present one.
            text: its value.
            hosts: how many there are.

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
    """Return the image of a document, or None where there is none of that number.

    Raises:
        StoreBroken: it cannot be decoded.
    """
    body = bodies.get(number)
    if body is None:
        return None
    with report_corruption(f"image {number}"):
        return msgspec.json.decode(body, type=Image)
