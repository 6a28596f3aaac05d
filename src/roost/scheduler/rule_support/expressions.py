"""Expressions over hosts, written in JSON: ``["and", [">=", "$free_ram_mb", 1024], ["=", "$host", "a"]]``.

Each operation runs once over the columns if its operands are numbers, else once per distinct pair of values. The
result equals a Python evaluation per host: an operand that a host lacks is omitted, so the next one takes its
place. If two operands have no order, the host's verdict is "broken".
"""

import json
import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from roost.engine.columns.types import Mask, Rows, Scores
from roost.model.host import HostFacts
from roost.scheduler.framework.host_attributes import DYNAMIC, FACTS, NAMES, RATIOS, STATIC
from roost.scheduler.framework.host_view import HostView

_Verdicts = npt.NDArray[np.int8]  # shape (hosts,), of _FALSE, _TRUE and _BROKEN
_FALSE, _TRUE, _BROKEN = 0, 1, 2
_ABSENT = 2  # marks an operand that a host lacks

_COMPARISONS: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}
OPERATORS = (*_COMPARISONS, "in", "not", "or", "and")
_NUMBERS = DYNAMIC | STATIC | RATIOS
_DEPTH_MAX = 100
_EXAMPLE = '["and", [">=", "$free_ram_mb", 1024], [">=", "$free_disk_mb", 204800]]'
# Upper bound on integers that a float64 column represents exactly.
_EXACT_MAX = 2**53


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """A literal value of the expression; None is omitted."""

    value: object


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """An attribute of the host, followed by keys of nested tables."""

    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An operator and its operands."""

    operator: str
    operands: tuple["Constant | Path | Operation", ...]
    text: str  # equal for equal operations


Node = Constant | Path | Operation


@lru_cache(maxsize=256)
def parse(text: str) -> Operation | None:
    """Parse an expression.

    Returns:
        None if it is empty, such as ``[]``.

    Raises:
        ValueError: it is invalid; the message gives the reason, without a subject.
    """
    try:
        document = json.loads(text, parse_constant=_reject_constant)
    except (ValueError, RecursionError):
        raise ValueError(f"is not JSON, such as {_EXAMPLE}") from None
    if not document:
        return None
    if not isinstance(document, list):
        raise ValueError("must be a list that begins with an operator")  # noqa: TRY004  # the text is invalid, not its type
    return _parse_operation(document, depth=1)


def _reject_constant(text: str) -> float:
    raise ValueError(text)


def _parse_operation(document: list[Any], *, depth: int) -> Operation:
    if depth > _DEPTH_MAX:
        raise ValueError(f"is nested more than {_DEPTH_MAX} deep")
    name, *operands = document
    if not isinstance(name, str) or name not in OPERATORS:
        raise ValueError(f"has {json.dumps(name)[:70]} instead of an operator; operators are {', '.join(OPERATORS)}")
    nodes = tuple(_parse_node(each, depth=depth) for each in operands)
    return Operation(operator=name, operands=nodes, text=json.dumps(document))


def _parse_node(document: object, *, depth: int) -> Node:
    if isinstance(document, list):
        return _parse_operation(document, depth=depth + 1) if document else Constant(value=True)
    if isinstance(document, str) and document.startswith("$"):
        return Path(parts=tuple(document[1:].split(".")))
    return Constant(value=None if document == "" else document)


def paths(node: Node) -> Iterator[Path]:
    """Yield the attributes of an expression, in order."""
    if isinstance(node, Path):
        yield node
    elif isinstance(node, Operation):
        for operand in node.operands:
            yield from paths(operand)


def reads_use(node: Node) -> bool:
    """Return whether an expression reads a value that changes with claims."""
    return any(path.parts[0] in DYNAMIC for path in paths(node))


def judge(hosts: HostView, expression: Operation) -> tuple[Mask, Mask]:
    """Return which hosts satisfy an expression, and on which it compares unordered values.

    Returns:
        Two masks: bool, shape (hosts,); no host is in both.
    """
    verdicts = _memoize_verdicts(hosts, expression)
    return verdicts == _TRUE, verdicts == _BROKEN


def values(hosts: HostView, path: Path) -> list[object]:
    """Return each host's value at a path, None if the path does not exist."""
    name, *rest = path.parts
    if name in _NUMBERS:
        return [None] * len(hosts) if rest else list(_NUMBERS[name](hosts).tolist())
    if name in NAMES:
        return [None] * len(hosts) if rest else list(NAMES[name](hosts))
    read = FACTS.get(name)
    return [None] * len(hosts) if read is None else [_follow_path(read, facts, rest) for facts in hosts.all_facts()]


def _follow_path(read: Callable[[HostFacts], object], facts: HostFacts, names: Iterable[str]) -> object:
    value = read(facts)
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Numbers:
    """One number per host."""

    numbers: Scores  # float64, shape (hosts,)

    def take(self, rows: Rows) -> "_Numbers":
        return _Numbers(numbers=self.numbers[rows])

    def is_present(self) -> Mask:
        return np.ones(len(self.numbers), dtype=np.bool_)

    def truth(self) -> Mask:
        mask: Mask = self.numbers != 0
        return mask

    def as_objects(self) -> "_Objects":
        values, codes = np.unique(self.numbers, return_inverse=True)
        return _Objects(objects=values.tolist(), codes=codes)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Objects:
    """One value per host, encoded: distinct values, and one code per host."""

    objects: list[Any]  # the distinct values
    codes: Rows  # index of each host's value, -1 for none

    def take(self, rows: Rows) -> "_Objects":
        return _Objects(objects=self.objects, codes=self.codes[rows])

    def is_present(self) -> Mask:
        mask: Mask = self.codes >= 0
        return mask

    def truth(self) -> Mask:
        mask: Mask = np.array([*map(bool, self.objects), False], dtype=np.bool_)[self.codes]
        return mask

    def as_objects(self) -> "_Objects":
        return self


_Value = _Numbers | _Objects


def _memoize_verdicts(hosts: HostView, operation: Operation) -> _Verdicts:
    """Return the verdicts of an operation, cached until facts change unless they depend on claims."""
    if reads_use(operation):
        return _verdicts(hosts, operation)
    key = ("expression", hosts.epoch, operation.text)
    return hosts.memoize(key, lambda all_hosts: _verdicts(all_hosts, operation))


def _verdicts(hosts: HostView, operation: Operation) -> _Verdicts:
    if not len(hosts):
        return np.zeros(0, dtype=np.int8)
    broken = np.zeros(len(hosts), dtype=np.bool_)
    operands = [_value(hosts, each, broken) for each in operation.operands]
    if operation.operator == "not":
        # A list of negations is true if any negation is true.
        lists = _negations(operands, len(hosts))
        verdicts = np.array([any(each) for each in lists.objects], dtype=np.int8)[lists.codes]
    else:
        verdicts = _apply_to_present(operation.operator, operands, len(hosts))
    verdicts[broken] = _BROKEN
    return verdicts


def _value(hosts: HostView, node: Node, broken: Mask) -> _Value:
    """Return an operand's value on each host; add the hosts with a broken comparison in it to ``broken``."""
    if isinstance(node, Constant):
        return _constant(node.value, len(hosts))
    if isinstance(node, Path):
        name, *rest = node.parts
        if name in _NUMBERS and not rest:
            return _Numbers(numbers=_NUMBERS[name](hosts))
        return _encode_objects(values(hosts, node))
    if node.operator == "not":
        return _negations([_value(hosts, each, broken) for each in node.operands], len(hosts))
    verdicts = _memoize_verdicts(hosts, node)
    broken |= verdicts == _BROKEN
    return _Numbers(numbers=(verdicts == _TRUE).astype(np.float64))


def _constant(value: object, count: int) -> _Value:
    if isinstance(value, float) or (isinstance(value, int) and abs(value) <= _EXACT_MAX):
        return _Numbers(numbers=np.full(count, float(value)))
    return _Objects(objects=[value], codes=np.full(count, -1 if value is None else 0, dtype=np.intp))


def _encode_objects(values: list[object]) -> _Objects:
    numbers: dict[object, int] = {}
    objects: list[Any] = []
    codes = []
    for value in values:
        if value is None:
            codes.append(-1)
            continue
        key = value if isinstance(value, str) else (type(value), repr(value))
        if key not in numbers:
            numbers[key] = len(objects)
            objects.append(value)
        codes.append(numbers[key])
    return _Objects(objects=objects, codes=np.array(codes, dtype=np.intp))


def _negations(operands: list[_Value], count: int) -> _Objects:
    """Return the list of negations on each host: one per present operand."""
    if not operands:
        return _Objects(objects=[[]], codes=np.zeros(count, dtype=np.intp))
    table = np.array([np.where(each.is_present(), ~each.truth(), _ABSENT) for each in operands], dtype=np.int8)
    patterns, codes = np.unique(table, axis=1, return_inverse=True)
    lists = [[bool(each) for each in column if each != _ABSENT] for column in patterns.T.tolist()]
    return _Objects(objects=lists, codes=codes.reshape(-1))


def _apply_to_present(name: str, operands: list[_Value], count: int) -> _Verdicts:
    """Apply an operator to the operands that each host has."""
    if not operands:
        return np.full(count, _TRUE if name == "and" else _FALSE, dtype=np.int8)
    presence = np.array([each.is_present() for each in operands])
    if presence.all():
        return _apply(name, operands, count)
    verdicts = np.zeros(count, dtype=np.int8)
    patterns, codes = np.unique(presence, axis=1, return_inverse=True)
    for number, pattern in enumerate(patterns.T.tolist()):
        rows = np.flatnonzero(codes.reshape(-1) == number)
        present = [each.take(rows) for each, has in zip(operands, pattern, strict=True) if has]
        verdicts[rows] = _apply_to_present(name, present, len(rows))
    return verdicts


def _apply(name: str, operands: list[_Value], count: int) -> _Verdicts:
    if name in ("and", "or"):
        truths = np.array([each.truth() for each in operands])
        holds: Mask = np.all(truths, axis=0) if name == "and" else np.any(truths, axis=0)
        return holds.astype(np.int8)
    if len(operands) < 2:
        return np.zeros(count, dtype=np.int8)
    first, *others = operands
    verdicts_by_pair = np.array([_compare("=" if name == "in" else name, first, each) for each in others])
    if name == "in":
        is_in: Mask = np.any(verdicts_by_pair, axis=0)
        return is_in.astype(np.int8)
    verdicts: _Verdicts = verdicts_by_pair.min(axis=0)
    verdicts[np.any(verdicts_by_pair == _BROKEN, axis=0)] = _BROKEN
    return verdicts


def _compare(name: str, left: _Value, right: _Value) -> _Verdicts:
    compare = _COMPARISONS[name]
    if isinstance(left, _Numbers) and isinstance(right, _Numbers):
        holds: Mask = compare(left.numbers, right.numbers)
        return holds.astype(np.int8)
    lefts, rights = left.as_objects(), right.as_objects()
    width = len(rights.objects)
    pairs, codes = np.unique(lefts.codes * width + rights.codes, return_inverse=True)
    verdicts = [
        _compare_pair(compare, lefts.objects[pair // width], rights.objects[pair % width]) for pair in pairs.tolist()
    ]
    return np.array(verdicts, dtype=np.int8)[codes]


def _compare_pair(compare: Callable[[Any, Any], Any], left: object, right: object) -> int:
    try:
        return _TRUE if compare(left, right) else _FALSE
    except TypeError:
        return _BROKEN
