"""Values of the types that an API reads, for Hypothesis: nearly right ones, with something odd anywhere in them."""

import msgspec.inspect as told
from hypothesis import strategies as st

NUMBERS = [0, 1, -1, 2**31 - 1, 2**31, 2**63 - 1, 2**63, 2**64, 10**400, -(2**63), -(2**63) - 1]
TEXTS = ["", "\0", "a\0b", "é", "😀", "x" * 256, "x" * 5_000, "\n", " ", "..", "%", "null", "-1", "1e9", "{}"]
# So long an answer may be asked to wait, or not.
_WAITS = [0, 0.0, 1e-9, -1, 26, 1e308, "x", None, 10**400]


def values_of(kind, words):
    """Return values of a type, decoded JSON: right, or odd in places.

    Args:
        words: texts that mean something to whoever reads them.
    """
    return _of(told.type_info(kind), tuple(words))


def _of(kind, words):
    right = _right(kind, words)
    odd = st.one_of(
        st.none(), st.booleans(), st.sampled_from(NUMBERS), st.sampled_from(TEXTS), st.just([]), st.just({})
    )
    return st.integers(0, 11).flatmap(lambda chance: odd if chance == 0 else right)


def _right(kind, words):
    match kind:
        case told.Metadata():
            return _right(kind.type, words)
        case told.StructType():
            return _struct(kind, words)
        case told.UnionType():
            return st.one_of([_of(each, words) for each in kind.types])
        case told.StrType():
            return st.sampled_from(words) | st.sampled_from(TEXTS) | st.text(max_size=6)
        case told.IntType() | told.FloatType():
            edges = [each for each in (kind.ge, kind.le, kind.gt, kind.lt) if each is not None]
            near = [number + step for number in edges for step in (-1, 0, 1)]
            return st.sampled_from([*near, *NUMBERS]) | st.integers(0, 8) | st.floats(0, 4)
        case told.BoolType():
            return st.booleans()
        case told.NoneType():
            return st.none()
        case told.LiteralType():
            return st.sampled_from(kind.values)
        case told.ListType() | told.VarTupleType() | told.SetType() | told.FrozenSetType():
            return st.lists(_of(kind.item_type, words), max_size=3)
        case told.TupleType():
            return st.tuples(*[_of(each, words) for each in kind.item_types]).map(list)
        case told.DictType():
            return st.dictionaries(st.sampled_from([*words, *TEXTS]), _of(kind.value_type, words), max_size=2)
    return st.sampled_from(TEXTS)


def _struct(kind, words):
    needed, more = {}, {}
    for each in kind.fields:
        found = st.sampled_from(_WAITS) if each.name == "wait_s" else _of(each.type, words)
        (needed if each.required else more)[each.encode_name] = found
    whole = st.fixed_dictionaries(needed, optional=more)
    if kind.tag_field is not None:
        whole = whole.map(lambda found: {**found, kind.tag_field: kind.tag})
    beside = whole.map(lambda found: {**found, "beside": 1})
    return st.integers(0, 19).flatmap(lambda chance: beside if chance == 0 else whole)
