"""Hypothesis strategies for request bodies: mostly valid values with odd values in any place."""

from hypothesis import strategies as st
from msgspec import inspect

NUMBERS = [0, 1, -1, 2**31 - 1, 2**31, 2**63 - 1, 2**63, 2**64, 10**400, -(2**63), -(2**63) - 1]
TEXTS = ["", "\0", "a\0b", "é", "😀", "x" * 256, "x" * 5_000, "\n", " ", "..", "%", "null", "-1", "1e9", "{}"]
# Valid and invalid values of ``wait_s``.
_WAITS = [0, 0.0, 1e-9, -1, 26, 1e308, "x", None, 10**400]


def values_of(kind, words):
    """Return a strategy for decoded JSON values of a type: valid, or odd in places.

    Args:
        words: strings with a meaning in the API.
    """
    return _values(inspect.type_info(kind), tuple(words))


def _values(kind, words):
    right = _valid_values(kind, words)
    odd = st.one_of(
        st.none(), st.booleans(), st.sampled_from(NUMBERS), st.sampled_from(TEXTS), st.just([]), st.just({})
    )
    return st.integers(0, 11).flatmap(lambda chance: odd if chance == 0 else right)


def _valid_values(kind, words):
    match kind:
        case inspect.Metadata():
            return _valid_values(kind.type, words)
        case inspect.StructType():
            return _struct_values(kind, words)
        case inspect.UnionType():
            return st.one_of([_values(each, words) for each in kind.types])
        case inspect.StrType():
            return st.sampled_from(words) | st.sampled_from(TEXTS) | st.text(max_size=6)
        case inspect.IntType() | inspect.FloatType():
            edges = [each for each in (kind.ge, kind.le, kind.gt, kind.lt) if each is not None]
            near = [number + step for number in edges for step in (-1, 0, 1)]
            return st.sampled_from([*near, *NUMBERS]) | st.integers(0, 8) | st.floats(0, 4)
        case inspect.BoolType():
            return st.booleans()
        case inspect.NoneType():
            return st.none()
        case inspect.LiteralType():
            return st.sampled_from(kind.values)
        case inspect.ListType() | inspect.VarTupleType() | inspect.SetType() | inspect.FrozenSetType():
            return st.lists(_values(kind.item_type, words), max_size=3)
        case inspect.TupleType():
            return st.tuples(*[_values(each, words) for each in kind.item_types]).map(list)
        case inspect.DictType():
            return st.dictionaries(st.sampled_from([*words, *TEXTS]), _values(kind.value_type, words), max_size=2)
    return st.sampled_from(TEXTS)


def _struct_values(kind, words):
    required, optional = {}, {}
    for each in kind.fields:
        values = st.sampled_from(_WAITS) if each.name == "wait_s" else _values(each.type, words)
        (required if each.required else optional)[each.encode_name] = values
    whole = st.fixed_dictionaries(required, optional=optional)
    if kind.tag_field is not None:
        whole = whole.map(lambda value: {**value, kind.tag_field: kind.tag})
    with_unknown_field = whole.map(lambda value: {**value, "beside": 1})
    return st.integers(0, 19).flatmap(lambda chance: with_unknown_field if chance == 0 else whole)
