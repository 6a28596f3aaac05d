"""Stored flavors and images in answers."""

from typing import Annotated

import msgspec
from msgspec import UNSET, Meta, UnsetType

from roost.model.documents.request_document import ImageEntry, RequestDocument
from roost.model.flavor import Flavor


class FlavorsQuery(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The flavors to list."""

    requested: Annotated[bool, Meta(description="Whether to add the flavors of stored decisions.")] = False
    shapes: Annotated[bool, Meta(description="Whether to add the shapes of stored requests.")] = False


class FlavorsList(msgspec.Struct, frozen=True, kw_only=True):
    """Flavors, ordered by name."""

    flavors: list[Flavor]
    shapes: Annotated[
        list[RequestDocument] | UnsetType,
        Meta(description="The different stored requests, without hosts, hints and projects."),
    ] = UNSET


class ShownImage(ImageEntry, frozen=True, kw_only=True):
    """A stored image."""

    name: Annotated[str, Meta(description="Name of the image.")]


class ImagesList(msgspec.Struct, frozen=True, kw_only=True):
    """Stored images, ordered by name."""

    images: list[ShownImage]
