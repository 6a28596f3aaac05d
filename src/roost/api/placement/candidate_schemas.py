"""Schemas of the query string of ``GET /allocation_candidates``, by version."""

from functools import cache
from typing import Any

from roost.api.json_schema import Schema
from roost.model.placement import microversions
from roost.model.placement.microversions import Version

_TEXT = {"type": "string"}
_LIMIT = {"type": ["integer", "string"], "pattern": "^[1-9][0-9]*$", "minimum": 1, "minLength": 1}
_POLICY = {"type": "string", "enum": ["none", "isolate"]}
_ONLY_TEXT = {"type": ["string"]}
_NUMBER = "[1-9][0-9]*"
_WORD = "[a-zA-Z0-9_-]{1,64}"
# Versions with a change of the query string.
_STEPS = (
    microversions.CANDIDATES,
    microversions.CANDIDATES_LIMIT,
    microversions.CANDIDATES_BY_TRAITS,
    microversions.CANDIDATES_BY_MEMBERSHIP,
    microversions.GRANULAR_GROUPS,
    microversions.CANDIDATES_IN_TREE,
    microversions.TEXT_SUFFIXES,
    microversions.ROOT_REQUIRED,
    microversions.SAME_SUBTREE,
)


def suffix_pattern(version: Version) -> str:
    """Return the pattern of group suffixes; empty: the version has no suffixes."""
    if version < microversions.GRANULAR_GROUPS:
        return ""
    return _WORD if version >= microversions.TEXT_SUFFIXES else _NUMBER


def schema_of(version: Version) -> Schema:
    """Return the schema of a version."""
    return _schema(max(step for step in _STEPS if step <= version))


@cache
def _schema(step: Version) -> Schema:
    return Schema(_of_one_group(step) if step < microversions.GRANULAR_GROUPS else _of_groups(step))


def _of_one_group(step: Version) -> dict[str, Any]:
    properties: dict[str, Any] = {"resources": _TEXT}
    if step >= microversions.CANDIDATES_LIMIT:
        properties["limit"] = _LIMIT
    if step >= microversions.CANDIDATES_BY_TRAITS:
        properties["required"] = _ONLY_TEXT
    if step >= microversions.CANDIDATES_BY_MEMBERSHIP:
        properties["member_of"] = _ONLY_TEXT
    return {"type": "object", "properties": properties, "required": ["resources"], "additionalProperties": False}


def _of_groups(step: Version) -> dict[str, Any]:
    properties: dict[str, Any] = {"limit": _LIMIT, "group_policy": _POLICY}
    if step >= microversions.ROOT_REQUIRED:
        properties["root_required"] = _ONLY_TEXT
    if step >= microversions.SAME_SUBTREE:
        properties["same_subtree"] = _ONLY_TEXT
    names = ["resources", "required", "member_of"]
    if step >= microversions.CANDIDATES_IN_TREE:
        names.append("in_tree")
    suffix = suffix_pattern(step)
    return {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        "patternProperties": {f"^{name}({suffix})?$": _TEXT for name in names},
    }
