"""Images as Nova's filters read them."""

from typing import Any

from roost.model.image import Image, present_properties
from roost.scheduler.image_texts import is_image_property, spelled


class ImageMetaProps(dict[str, str]):
    """The properties of an image, by their present names; each also is an attribute, None where it is not set."""

    def __getattr__(self, name: str) -> str | None:
        if name.startswith("__"):
            raise AttributeError(name)
        return self.get(name)

    def to_dict(self) -> dict[str, str]:
        """Return the properties, each value in its one spelling."""
        return {name: spelled(name, text) for name, text in self.items()}

    def obj_attr_is_set(self, attrname: str) -> bool:
        """Say whether the image sets a property."""
        return attrname in self


class ImageMeta(Image, frozen=True, kw_only=True):
    """An image, whose properties are ``ImageMetaProps``."""

    @classmethod
    def from_dict(cls, image_meta: dict[str, Any]) -> "ImageMeta":
        """Return an image from the table that an image service gives."""
        properties = {name: str(value) for name, value in (image_meta.get("properties") or {}).items()}
        return cls(
            id=image_meta.get("id"), disk_format=image_meta.get("disk_format"),
            properties=ImageMetaProps(present_properties(properties)),
        )  # fmt: skip

    def __contains__(self, name: object) -> bool:
        """Say whether a field is set."""
        return isinstance(name, str) and getattr(self, name, None) is not None


def show_image(image: Image | None) -> ImageMeta:
    """Return an image with what plug-ins expect of one; without an image, one that says nothing."""
    if image is None:
        return ImageMeta(properties=ImageMetaProps())
    known = {
        name: spelled(name, text) if is_image_property(name) else text
        for name, text in present_properties(image.properties).items()
    }
    return ImageMeta(id=image.id, disk_format=image.disk_format, properties=ImageMetaProps(known))
