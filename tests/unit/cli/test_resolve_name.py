"""Objects by the names that users give."""

import pytest

from roost.cli.resolve_name import find_instance
from roost.errors import NotFound


class Listing:
    """An API with instances, whose lists accept patterns."""

    def __init__(self, *instances):
        self.instances = [dict(zip(("name", "uuid", "status", "host"), each, strict=True)) for each in instances]

    def list_all(self, _noun, *, name, status=None):
        """Return the instances whose names begin like the pattern."""
        start = name.removesuffix("*")
        return [
            each
            for each in self.instances
            if each["name"].startswith(start) and (each["status"] == "DELETED") == (status == "DELETED")
        ]


def test_pattern_is_not_a_name():
    api = Listing(("web-2", "u2", "ACTIVE", "h"), ("old", "u3", "DELETED", ""))
    assert find_instance(api, "web-2") == "u2"
    assert find_instance(api, "old", with_deleted=True) == "u3"
    for name in ("web*", "web-", "*", "old*"):
        with pytest.raises(NotFound):
            find_instance(api, name, with_deleted=True)
    assert find_instance(Listing(("web*", "u4", "ACTIVE", "h"), ("web-2", "u2", "ACTIVE", "h")), "web*") == "u4"
