"""Schemas of bodies with allocations, by version; errors show the schemas with their keys in this order."""

from typing import Any

from roost.api.json_schema import Schema
from roost.model.placement import microversions
from roost.model.placement.microversions import Version

Part = dict[str, Any]

# Patterns of the schemas; errors show them.
UUID_KEY = "^[0-9a-fA-F-]{36}$"
CLASS_KEY = "^[A-Z0-9_]+$"
_OWNER: Part = {"type": "string", "minLength": 1, "maxLength": 255}
_RESOURCES: Part = {
    "type": "object",
    "minProperties": 1,
    "patternProperties": {CLASS_KEY: {"type": "integer", "minimum": 1}},
    "additionalProperties": False,
}
_LIST: Part = {
    "type": "array",
    "minItems": 1,
    "items": {
        "type": "object",
        "properties": {
            "resource_provider": {
                "type": "object",
                "properties": {"uuid": {"type": "string", "format": "uuid"}},
                "additionalProperties": False,
                "required": ["uuid"],
            },
            "resources": _RESOURCES,
        },
        "required": ["resource_provider", "resources"],
        "additionalProperties": False,
    },
}
_MAPPINGS: Part = {
    "type": "object",
    "minProperties": 1,
    "patternProperties": {
        "[a-zA-Z0-9_-]{1,64}": {"type": "array", "minItems": 1, "items": {"type": "string", "format": "uuid"}}
    },
}
_TYPE: Part = {"type": "string", "pattern": "^[A-Z0-9_]+$", "minLength": 1, "maxLength": 255}


def _list_schema(properties: Part) -> Schema:
    """Return the schema of one consumer before 1.12."""
    required = ["allocations", *properties]
    properties = {"allocations": _LIST, **properties}
    return Schema({"type": "object", "properties": properties, "required": required, "additionalProperties": False})


def _consumer_schema(version: Version, *, minimum: int) -> Part:
    """Return the schema of one consumer since 1.12; ``minimum``: minimum number of providers."""
    allocations: Part = {
        "type": "object",
        "minProperties": minimum,
        "patternProperties": {
            UUID_KEY: {
                "type": "object",
                "properties": {"generation": {"type": "integer"}, "resources": _RESOURCES},
                "required": ["resources"],
                "additionalProperties": False,
            }
        },
        "additionalProperties": False,
    }
    properties: Part = {"allocations": allocations, "project_id": _OWNER, "user_id": _OWNER}
    required = list(properties)
    if version >= microversions.CONSUMER_GENERATIONS:
        properties["consumer_generation"] = {"type": ["integer", "null"], "additionalProperties": False}
        required.append("consumer_generation")
    if version >= microversions.MAPPINGS:
        properties["mappings"] = _MAPPINGS
    if version >= microversions.CONSUMER_TYPES:
        properties["consumer_type"] = _TYPE
        required.append("consumer_type")
    return {"type": "object", "properties": properties, "additionalProperties": False, "required": required}


def consumers_schema(version: Version, *, minimum: int = 1) -> Part:
    """Return the schema of several consumers, since 1.13; ``minimum``: minimum number of consumers."""
    return {
        "type": "object",
        "minProperties": minimum,
        "additionalProperties": False,
        "patternProperties": {UUID_KEY: _consumer_schema(version, minimum=0)},
    }


_ONE: dict[Version, Schema] = {
    microversions.OLDEST: _list_schema({}),
    microversions.ALLOCATIONS_NAME_OWNERS: _list_schema({"project_id": _OWNER, "user_id": _OWNER}),
    microversions.ALLOCATIONS_BY_PROVIDER: Schema(_consumer_schema(microversions.ALLOCATIONS_BY_PROVIDER, minimum=1)),
    **{
        since: Schema(_consumer_schema(since, minimum=0))
        for since in (microversions.CONSUMER_GENERATIONS, microversions.MAPPINGS, microversions.CONSUMER_TYPES)
    },
}
_MANY: dict[Version, Schema] = {
    since: Schema(consumers_schema(since))
    for since in (
        microversions.ALLOCATIONS_OF_MANY,
        microversions.CONSUMER_GENERATIONS,
        microversions.MAPPINGS,
        microversions.CONSUMER_TYPES,
    )
}


def schema_of_one(version: Version) -> Schema:
    """Return the schema for a body of one consumer."""
    return pick_newest(_ONE, version)


def schema_of_many(version: Version) -> Schema:
    """Return the schema for a body of several consumers."""
    return pick_newest(_MANY, version)


def pick_newest(schemas: dict[Version, Schema], version: Version) -> Schema:
    """Return the newest schema up to a version; the schemas are in ascending order."""
    return next(schemas[since] for since in reversed(schemas) if version >= since)
