"""The JSON Schemas accept what the program reads and writes, and nothing else."""

import msgspec
import pytest
from jsonschema import Draft202012Validator

from roost.offline.document_schemas import DOCUMENTS, schema_of
from roost.scheduler.explain.fleet_export import export_fleet
from roost.simulator.traces.generated_workload import Recipe, generate
from roost.simulator.workload import Options
from tests.support.fleets.worlds import roost_on
from tests.unit.offline.documents import answer, fleet, provider, request


def validator(document: str) -> Draft202012Validator:
    """Return the validator of a kind of document."""
    return Draft202012Validator(schema_of(document))


def as_json(document: object) -> object:
    """Return a document as decoded JSON."""
    return msgspec.json.decode(msgspec.json.encode(document))


def objects(schema: dict) -> list[tuple[str, str, dict]]:
    """Return every key of every object in a schema, with its definition."""
    return [
        (name, key, definition)
        for name, part in schema["$defs"].items()
        for key, definition in part.get("properties", {}).items()
    ]


@pytest.mark.parametrize("document", DOCUMENTS)
def test_schema_is_valid_and_describes_every_key(document):
    schema = schema_of(document)
    Draft202012Validator.check_schema(schema)
    assert [
        (name, key) for name, key, definition in objects(schema) if not definition.get("description", "").endswith(".")
    ] == []


@pytest.mark.parametrize("document", ["fleet", "request"])
def test_every_object_of_a_document_refuses_unknown_keys(document):
    parts = schema_of(document)["$defs"]
    assert [name for name, part in parts.items() if part.get("additionalProperties") is not False] == []


def test_exported_fleets_requests_and_answers_match_their_schemas():
    workload = generate(Recipe(hosts=20, requests=60, seed=2), Options())
    roost = roost_on()
    roost.install(workload.fleet)
    roost.outcomes([event.act for event in workload.events])
    exported = export_fleet(roost.state, now_s=1.0)
    validator("fleet").validate(as_json(exported))
    for fields in ({}, {"count": 3}, {"flavor": {"vcpus": 999}}):
        validator("request").validate(as_json(request(**fields)))
        validator("answer").validate(as_json(answer(exported, **fields)))
        validator("answer").validate(as_json(answer(fleet(), **fields)))


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {"hosts": []},
        {"hosts": [{"host": "a", "free_ram": 1}]},
        {"hosts": [{"host": "a", "free_ram_mb": "1"}]},
        {"hosts": [{"host": "a", "vcpus_total": -1}]},
        {"hosts": [{"host": "a"}], "aggregates": [{"name": "x"}]},
        {"hosts": [{"host": "a"}], "server_groups": [{"name": "x", "policy": "nice"}]},
        {"hosts": [{"host": "a"}], "providers": [provider("a", inventories={"VCPU": {}})]},
        {"hosts": [{"host": "a"}], "version": 2},
    ],
)
def test_schema_and_parser_refuse_the_same_documents(fields):
    assert not validator("fleet").is_valid(fields)
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(fields, DOCUMENTS["fleet"])


def test_schema_defaults_equal_the_parser_defaults():
    kinds = {kind.__name__: kind for kind in map(type, (fleet(), fleet().hosts[0], request(), request().flavor))}
    for document in ("fleet", "request"):
        for name, part in schema_of(document)["$defs"].items():
            if name in kinds:
                defaults = {
                    field.encode_name: msgspec.to_builtins(
                        field.default if field.default is not msgspec.NODEFAULT else field.default_factory()
                    )
                    for field in msgspec.structs.fields(kinds[name])
                    if not field.required
                }
                published = {key: each["default"] for key, each in part["properties"].items() if "default" in each}
                assert published == defaults
