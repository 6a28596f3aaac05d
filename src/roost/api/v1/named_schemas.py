"""Flavors and images under names, as the API writes them."""

from typing import Annotated

import msgspec
from msgspec import Meta

from roost.model.flavor import Flavor
from roost.model.request_document import ImageEntry


class FlavorsList(msgspec.Struct, frozen=True, kw_only=True):
    """Stored flavors, by name."""

    flavors: list[Flavor]


class ShownImage(ImageEntry, frozen=True, kw_only=True):
    """A stored image."""

    name: Annotated[str, Meta(description="Its name.")]


class ImagesList(msgspec.Struct, frozen=True, kw_only=True):
    """Stored images, by name."""

    images: list[ShownImage]
