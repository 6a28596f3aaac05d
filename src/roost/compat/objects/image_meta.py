"""Images for Nova's filters."""

from collections.abc import Mapping
from typing import Any

from roost.model.image import Image, present_properties
from roost.scheduler.framework.image_text import is_image_property, normalize_property, value_kind


class ImageMetaProps(dict[str, Any]):
    """The properties of an image, by their current names. Attributes give the same values; None: not set.

    Numbers and switches are converted; other values are strings in canonical spelling. As in Nova, only properties
    defined by Nova are included; ``others`` has the other properties.
    """

    def __init__(self, known: Mapping[str, Any] | None = None, *, others: Mapping[str, str] | None = None) -> None:
        super().__init__(known or {})
        self.others: Mapping[str, str] = others or {}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.get(name)

    def to_dict(self) -> dict[str, Any]:
        """Return the properties as a plain dict."""
        return dict(self)

    def obj_attr_is_set(self, attrname: str) -> bool:
        """Return whether a property is set."""
        return attrname in self


class ImageMeta(Image, frozen=True, kw_only=True):
    """An image with ``ImageMetaProps``."""

    @classmethod
    def from_dict(cls, image_meta: dict[str, Any]) -> "ImageMeta":
        """Build an image from the dict of an image service."""
        properties = {name: str(value) for name, value in (image_meta.get("properties") or {}).items()}
        return cls(
            id=image_meta.get("id"),
            disk_format=image_meta.get("disk_format"),
            properties=_properties(properties),
        )

    def __contains__(self, name: object) -> bool:
        """Return whether a field is set."""
        return isinstance(name, str) and getattr(self, name, None) is not None


def show_image(image: Image | None) -> ImageMeta:
    """Return an image with the attributes for plug-ins; None becomes an image without properties."""
    if image is None:
        return ImageMeta(properties=ImageMetaProps())
    return ImageMeta(id=image.id, disk_format=image.disk_format, properties=_properties(image.properties))


def read_image_meta(shown: Image | None) -> Image | None:
    """Convert an image for plug-ins to Roost's image."""
    if not isinstance(shown, ImageMeta):
        return shown
    properties = all_properties(shown)
    return Image(id=shown.id, disk_format=shown.disk_format, properties=properties)


def all_properties(image: Image) -> dict[str, str]:
    """Return all properties of an image as texts, including those that Nova does not define."""
    others = getattr(image.properties, "others", {})
    return {name: str(value) for name, value in image.properties.items()} | dict(others)


def _properties(properties: Mapping[str, str]) -> ImageMetaProps:
    present = present_properties(properties)
    known = {name: _convert_value(name, text) for name, text in present.items() if is_image_property(name)}
    return ImageMetaProps(known, others={name: text for name, text in present.items() if name not in known})


def _convert_value(name: str, text: str) -> Any:
    kind, value = value_kind(name), normalize_property(name, text)
    if kind is bool:
        return value == "True"
    return int(value) if kind is int and value.lstrip("-").isdigit() else value
