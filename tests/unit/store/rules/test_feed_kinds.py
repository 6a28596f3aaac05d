"""The form of changes stays readable: for older programs those of newer ones, and the reverse."""

from typing import get_args

import msgspec
import pytest

from roost.model.writes import ConsumerRow, InstanceRow, InventoryRow, Place, Write
from roost.store.rules.codec import decode_writes, encode_writes
from roost.store.rules.feed_kinds import BEFORE_HEARTBEATS, FIRST_SCHEMAS, newer_kinds
from roost.store.rules.schema import SCHEMA_VERSION
from tests.unit.store.rules.released_writes import fields_of, line_of, released_writes

SAMPLES = released_writes()
KINDS = {kind.__struct_config__.tag: kind for kind in get_args(Write)}
ROWS = (ConsumerRow, InstanceRow, InventoryRow, Place)
each_sample = pytest.mark.parametrize("sample", SAMPLES, ids=[f"{at}-{each.kind}" for at, each in enumerate(SAMPLES)])


def arrays_of(sample):
    """Return the writes of a sample as plain arrays."""
    return msgspec.msgpack.decode(sample.body)


def decode(arrays):
    return decode_writes(msgspec.msgpack.encode(arrays))


def required_count(kind):
    defaults = kind.__struct_defaults__
    return len(kind.__struct_fields__) - len(defaults)


def is_part_of(old, new):
    """Return whether an array begins with the elements of another one, at every level."""
    if isinstance(old, list):
        return isinstance(new, list) and len(old) <= len(new) and all(map(is_part_of, old, new))
    return old == new


def lengthen(value, names):
    """Append an element to a row, wherever its fields are named."""
    if isinstance(names, list):
        if any(isinstance(each, dict) for each in names):
            return [lengthen(each, name) for each, name in zip(value, names, strict=True)]
        return value
    if not isinstance(names, dict) or isinstance(value, dict):
        return value
    return [*map(lengthen, value, names.values()), {"a later": "field"}]


def test_each_kind_has_a_released_sample():
    missing = sorted({*KINDS} - {sample.kind for sample in SAMPLES})
    assert not missing, "append a line of released_writes.line_of() for each to released_writes.jsonl"
    assert line_of(decode_writes(SAMPLES[0].body)[0]).startswith('{"kind": "symbol", ')


@each_sample
def test_released_changes_are_decoded(sample):
    (write,) = decode_writes(sample.body)
    assert type(write) is KINDS[sample.kind]
    found = fields_of(write)
    assert {name: found[name] for name in sample.fields} == sample.fields


@each_sample
def test_released_programs_find_their_fields_in_new_changes(sample):
    assert is_part_of(arrays_of(sample), msgspec.msgpack.decode(encode_writes(decode_writes(sample.body))))


@each_sample
def test_shorter_changes_of_older_programs_are_decoded(sample):
    ((_, *values),) = arrays_of(sample)
    kind = KINDS[sample.kind]
    for count in range(required_count(kind), len(values)):
        (write,) = decode([[sample.kind, *values[:count]]])
        found = fields_of(write)
        for name, value in list(sample.fields.items())[:count]:
            assert found[name] == value
        defaults = {field.name: field.default for field in msgspec.structs.fields(kind)}
        missing = [name for name in kind.__struct_fields__[count:] if defaults[name] is not msgspec.NODEFAULT]
        assert all(found[name] == defaults[name] for name in missing)


@each_sample
def test_longer_changes_of_newer_programs_are_decoded(sample):
    ((tag, *values),) = arrays_of(sample)
    longer = [tag, *lengthen(values, sample.fields)]
    assert len(longer) == len(values) + 2
    assert fields_of(decode([longer])[0]) == fields_of(decode_writes(sample.body)[0])


def test_rows_in_changes_may_be_longer():
    claim = next(sample for sample in SAMPLES if sample.kind == "claim")
    ((_, *values),) = arrays_of(claim)
    longer = lengthen(values, claim.fields)
    assert len(longer[0][0]) == len(values[0][0]) + 1
    for kind in ROWS:
        assert kind.__struct_config__.array_like
        assert not kind.__struct_config__.forbid_unknown_fields


def test_unknown_kinds_are_not_decoded():
    with pytest.raises(msgspec.ValidationError):
        decode([["later", 1]])


def test_each_kind_names_the_first_program():
    assert {*FIRST_SCHEMAS} == {*get_args(Write)}
    assert max(FIRST_SCHEMAS.values()) <= SCHEMA_VERSION
    assert min(FIRST_SCHEMAS.values()) == BEFORE_HEARTBEATS


def test_kinds_are_newer_than_the_programs_before_them(monkeypatch):
    kinds = dict(FIRST_SCHEMAS) | {ConsumerRow: "0013"}
    monkeypatch.setattr("roost.store.rules.feed_kinds.FIRST_SCHEMAS", kinds)
    newer_kinds.cache_clear()
    try:
        assert newer_kinds("0012") == newer_kinds("") == {ConsumerRow}
        assert newer_kinds("0013") == newer_kinds("0014") == set()
    finally:
        newer_kinds.cache_clear()
