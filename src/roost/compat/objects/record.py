"""The part of Nova's objects that plug-ins rely on: names that are set, and copies."""

import copy
from typing import Any, Self


class Record:
    """Base of objects that plug-ins read under Nova's names.

    Source:
        oslo_versionedobjects/base.py, VersionedObject: ``in`` says whether a field is set.
    """

    __slots__ = ()

    def __contains__(self, name: object) -> bool:
        """Say whether a field is set."""
        return isinstance(name, str) and getattr(self, name, None) is not None

    def obj_attr_is_set(self, attrname: str) -> bool:
        """Say whether a field is set."""
        return attrname in self

    def get(self, key: str, default: Any = None) -> Any:
        """Return a field, or ``default`` where it is not set."""
        value = getattr(self, key, None)
        return default if value is None else value

    def obj_clone(self) -> Self:
        """Return a copy whose tables can be changed without changing these."""
        clone = copy.copy(self)
        for name in getattr(type(self), "__dataclass_fields__", ()):
            value = getattr(clone, name)
            if isinstance(value, list | dict | set):
                setattr(clone, name, copy.copy(value))
        return clone
