"""The base behaviour of Nova's objects: tests for set fields, and copies."""

import copy
from typing import Any, Self


class Record:
    """Base of objects under Nova's names, for plug-ins.

    Source:
        oslo_versionedobjects/base.py, VersionedObject: ``in`` tests whether a field is set.
    """

    __slots__ = ()

    def __contains__(self, name: object) -> bool:
        """Return whether a field is set."""
        return isinstance(name, str) and getattr(self, name, None) is not None

    def obj_attr_is_set(self, attrname: str) -> bool:
        """Return whether a field is set."""
        return attrname in self

    def get(self, key: str, default: Any = None) -> Any:
        """Return a field, or ``default`` if it is not set."""
        value = getattr(self, key, None)
        return default if value is None else value

    def obj_clone(self) -> Self:
        """Return a copy, with copies of its dicts, lists and sets."""
        clone = copy.copy(self)
        for name in getattr(type(self), "__dataclass_fields__", ()):
            value = getattr(clone, name)
            if isinstance(value, list | dict | set):
                setattr(clone, name, copy.copy(value))
        return clone
