"""Names and their numbers: the standard names, and the numbering of new ones."""

from collections.abc import Callable, Collection, Iterable, Mapping

from roost.errors import BadRequest, Unavailable
from roost.model import names
from roost.model.writes import Item, PutSymbol, ReuseSymbol
from roost.placement.current import FIRST_NUMBERS, Current

# Maximum number of attempts to number names; an attempt fails if another process numbers names at the same time.
_ROUNDS = 8

_FORMS: dict[str, tuple[Callable[[str], bool], str]] = {
    "resource_class": (names.is_resource_class, "is neither a standard resource class nor CUSTOM_[A-Z0-9_]+"),
    "trait": (names.is_trait, "is neither a standard trait nor CUSTOM_[A-Z0-9_]+"),
    "consumer_type": (names.is_consumer_type, "is not a consumer type: 1..255 of A-Z, 0-9 and _"),
}


def check(kind: str, new_names: Iterable[str]) -> None:
    """Refuse a name that is neither standard nor a well-formed one of its kind.

    Raises:
        BadRequest: a name is malformed.
    """
    is_valid, problem = _FORMS[kind]
    for name in new_names:
        if not is_valid(name):
            raise BadRequest(f"{name!r} {problem}")


def missing_standard(classes: Collection[str], traits: Collection[str], *, highest_trait: int) -> list[PutSymbol]:
    """Return the standard resource classes and traits that a database lacks, with their numbers.

    Args:
        classes, traits: names in the database.
        highest_trait: highest number ever given to a trait; 0: none.
    """
    new_classes = [
        PutSymbol("resource_class", number, name)
        for number, name in enumerate(names.standard_resource_classes(), start=1)
        if name not in classes
    ]
    new_traits = sorted(name for name in names.standard_traits() if name not in traits)
    after = max(FIRST_NUMBERS["trait"], highest_trait) + 1
    return [*new_classes, *(PutSymbol("trait", number, name) for number, name in enumerate(new_traits, start=after))]


def install_standard(current: Current) -> None:
    """Number the standard names that a database lacks."""
    for _ in range(_ROUNDS):
        state = current.state
        missing = missing_standard(set(state.class_ids), set(state.trait_ids), highest_trait=state.trait_ids.highest)
        if not missing:
            return
        # Another process may do the same at once; the next round sees its numbers.
        current.commit([Item(writes=(write,)) for write in missing])


def ensure(current: Current, new_names: Mapping[str, Iterable[str]]) -> None:
    """Number new names.

    Args:
        new_names: by kind.

    Raises:
        BadRequest: a name is neither standard nor well formed, or the numbers are exhausted.
        Unavailable: other processes numbered names during every attempt.
    """
    for _ in range(_ROUNDS):
        writes = _number_names(current, new_names)
        # After a refusal, the columns have the names of the other process.
        if not writes or current.commit([Item(writes=tuple(writes))])[0] is None:
            return
    raise Unavailable("other processes numbered names at the same time, in every attempt; try again")


def _number_names(current: Current, new_names: Mapping[str, Iterable[str]]) -> list[PutSymbol | ReuseSymbol]:
    new = {kind: current.state.name_table(kind).find_missing(each) for kind, each in new_names.items()}
    for kind, each in new.items():
        check(kind, each)
    return [current.new_symbol(kind, name) for kind, each in new.items() for name in each]
