"""Expressions over hosts, written in JSON: ``["and", [">=", "$free_ram_mb", 1024], ["=", "$host", "a"]]``.

Each operation is done once for all hosts where its operands are numbers, and else once for each pair of values that
occurs. What it gives is what Python gives host by host: an operand that a host does not have is left out, so the next
one takes its place, and where two operands have no order the host's verdict is broken.
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
from roost.scheduler.framework.host_attributes import NAMES, RATIOS, TOLD, USED, WHOLE
from roost.scheduler.framework.host_view import HostView

_Verdicts = npt.NDArray[np.int8]  # shape (hosts,), of _FALSE, _TRUE and _BROKEN
_FALSE, _TRUE, _BROKEN = 0, 1, 2
_LEFT_OUT = 2  # in place of what an operand is, where a host does not have it

_COMPARE: dict[str, Callable[[Any, Any], Any]] = {
    "=": operator.eq,
    "<": operator.lt,
    ">": operator.gt,
    "<=": operator.le,
    ">=": operator.ge,
}
OPERATORS = (*_COMPARE, "in", "not", "or", "and")
_NUMBERS = USED | WHOLE | RATIOS
_DEPTH_MAX = 100
_EXAMPLE = '["and", [">=", "$free_ram_mb", 1024], [">=", "$free_disk_mb", 204800]]'
# Whole numbers up to here are exact in a column.
_EXACT_MAX = 2**53


@dataclass(frozen=True, slots=True, kw_only=True)
class Constant:
    """A value that is written in the expression; None is left out."""

    value: object


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """An attribute of the host, and names downwards from it."""

    parts: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """An operator and what it is applied to."""

    operator: str
    operands: tuple["Constant | Path | Operation", ...]
    text: str  # equal for equal operations


Node = Constant | Path | Operation


@lru_cache(maxsize=256)
def parse(text: str) -> Operation | None:
    """Read an expression.

    Returns:
        None where it says nothing, such as an empty list.

    Raises:
        ValueError: it is none; the message says why, without a subject.
    """
    try:
        told = json.loads(text, parse_constant=_no_number)
    except (ValueError, RecursionError):
        raise ValueError(f"is no JSON, such as {_EXAMPLE}") from None
    if not told:
        return None
    if not isinstance(told, list):
        raise ValueError("must be a list that begins with an operator")  # noqa: TRY004  # whoever wrote the text reads it
    return _operation(told, depth=1)


def _no_number(text: str) -> float:
    raise ValueError(text)


def _operation(told: list[Any], *, depth: int) -> Operation:
    if depth > _DEPTH_MAX:
        raise ValueError(f"is nested more than {_DEPTH_MAX} deep")
    name, *operands = told
    if not isinstance(name, str) or name not in OPERATORS:
        raise ValueError(f"has no operator in {json.dumps(name)[:70]}; there are {', '.join(OPERATORS)}")
    nodes = tuple(_node(each, depth=depth) for each in operands)
    return Operation(operator=name, operands=nodes, text=json.dumps(told))


def _node(told: object, *, depth: int) -> Node:
    if isinstance(told, list):
        return _operation(told, depth=depth + 1) if told else Constant(value=True)
    if isinstance(told, str) and told.startswith("$"):
        return Path(parts=tuple(told[1:].split(".")))
    return Constant(value=None if told == "" else told)


def paths(node: Node) -> Iterator[Path]:
    """Yield the attributes that an expression reads, in order."""
    if isinstance(node, Path):
        yield node
    elif isinstance(node, Operation):
        for each in node.operands:
            yield from paths(each)


def reads_use(node: Node) -> bool:
    """Say whether an expression reads what changes with claims."""
    return any(path.parts[0] in USED for path in paths(node))


def judge(hosts: HostView, expression: Operation) -> tuple[Mask, Mask]:
    """Say for which hosts an expression holds, and for which it compares what has no order.

    Returns:
        Two masks: bool, shape (hosts,); no host is in both.
    """
    verdicts = _remembered(hosts, expression)
    return verdicts == _TRUE, verdicts == _BROKEN


def values(hosts: HostView, path: Path) -> list[object]:
    """Return what each host has at a path, None where it ends early."""
    name, *rest = path.parts
    if name in _NUMBERS:
        return [None] * len(hosts) if rest else list(_NUMBERS[name](hosts).tolist())
    if name in NAMES:
        return [None] * len(hosts) if rest else list(NAMES[name](hosts))
    ask = TOLD.get(name)
    return [None] * len(hosts) if ask is None else [_below(ask, facts, rest) for facts in hosts.all_facts()]


def _below(ask: Callable[[HostFacts], object], facts: HostFacts, names: Iterable[str]) -> object:
    value = ask(facts)
    for name in names:
        value = value.get(name) if isinstance(value, dict) else None
    return value


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Numbers:
    """A number of every host."""

    numbers: Scores  # float64, shape (hosts,)

    def take(self, rows: Rows) -> "_Numbers":
        return _Numbers(numbers=self.numbers[rows])

    def known(self) -> Mask:
        return np.ones(len(self.numbers), dtype=np.bool_)

    def truth(self) -> Mask:
        mask: Mask = self.numbers != 0
        return mask

    def things(self) -> "_Things":
        found, codes = np.unique(self.numbers, return_inverse=True)
        return _Things(objects=found.tolist(), codes=codes)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Things:
    """Something of every host that is no number."""

    objects: list[Any]  # what occurs
    codes: Rows  # which of them each host has, -1 for none

    def take(self, rows: Rows) -> "_Things":
        return _Things(objects=self.objects, codes=self.codes[rows])

    def known(self) -> Mask:
        mask: Mask = self.codes >= 0
        return mask

    def truth(self) -> Mask:
        mask: Mask = np.array([*map(bool, self.objects), False], dtype=np.bool_)[self.codes]
        return mask

    def things(self) -> "_Things":
        return self


_Value = _Numbers | _Things


def _remembered(hosts: HostView, operation: Operation) -> _Verdicts:
    """Return the verdicts of an operation, made once until facts change where it reads nothing else."""
    if reads_use(operation):
        return _verdicts(hosts, operation)
    key = ("expression", hosts.epoch, operation.text)
    return hosts.remembered(key, lambda everyone: _verdicts(everyone, operation))


def _verdicts(hosts: HostView, operation: Operation) -> _Verdicts:
    if not len(hosts):
        return np.zeros(0, dtype=np.int8)
    broken = np.zeros(len(hosts), dtype=np.bool_)
    operands = [_value(hosts, each, broken) for each in operation.operands]
    if operation.operator == "not":
        # A list of negations holds if any of them does.
        found = _negations(operands, len(hosts))
        verdicts = np.array([any(each) for each in found.objects], dtype=np.int8)[found.codes]
    else:
        verdicts = _applied(operation.operator, operands, len(hosts))
    verdicts[broken] = _BROKEN
    return verdicts


def _value(hosts: HostView, node: Node, broken: Mask) -> _Value:
    """Return what each host has of an operand; hosts on which that cannot be said are marked."""
    if isinstance(node, Constant):
        return _constant(node.value, len(hosts))
    if isinstance(node, Path):
        name, *rest = node.parts
        if name in _NUMBERS and not rest:
            return _Numbers(numbers=_NUMBERS[name](hosts))
        return _coded(values(hosts, node))
    if node.operator == "not":
        return _negations([_value(hosts, each, broken) for each in node.operands], len(hosts))
    verdicts = _remembered(hosts, node)
    broken |= verdicts == _BROKEN
    return _Numbers(numbers=(verdicts == _TRUE).astype(np.float64))


def _constant(value: object, count: int) -> _Value:
    if isinstance(value, float) or (isinstance(value, int) and abs(value) <= _EXACT_MAX):
        return _Numbers(numbers=np.full(count, float(value)))
    return _Things(objects=[value], codes=np.full(count, -1 if value is None else 0, dtype=np.intp))


def _coded(found: list[object]) -> _Things:
    numbers: dict[object, int] = {}
    objects: list[Any] = []
    codes = []
    for value in found:
        if value is None:
            codes.append(-1)
            continue
        key = value if isinstance(value, str) else (type(value), repr(value))
        if key not in numbers:
            numbers[key] = len(objects)
            objects.append(value)
        codes.append(numbers[key])
    return _Things(objects=objects, codes=np.array(codes, dtype=np.intp))


def _negations(operands: list[_Value], count: int) -> _Things:
    """Return the list of negations that each host has: one for each operand that it has."""
    if not operands:
        return _Things(objects=[[]], codes=np.zeros(count, dtype=np.intp))
    table = np.array([np.where(each.known(), ~each.truth(), _LEFT_OUT) for each in operands], dtype=np.int8)
    found, codes = np.unique(table, axis=1, return_inverse=True)
    lists = [[bool(each) for each in column if each != _LEFT_OUT] for column in found.T.tolist()]
    return _Things(objects=lists, codes=codes.reshape(-1))


def _applied(name: str, operands: list[_Value], count: int) -> _Verdicts:
    """Apply an operator to the operands that each host has."""
    if not operands:
        return np.full(count, _TRUE if name == "and" else _FALSE, dtype=np.int8)
    known = np.array([each.known() for each in operands])
    if known.all():
        return _apply(name, operands, count)
    verdicts = np.zeros(count, dtype=np.int8)
    patterns, codes = np.unique(known, axis=1, return_inverse=True)
    for number, pattern in enumerate(patterns.T.tolist()):
        rows = np.flatnonzero(codes.reshape(-1) == number)
        left = [each.take(rows) for each, has in zip(operands, pattern, strict=True) if has]
        verdicts[rows] = _applied(name, left, len(rows))
    return verdicts


def _apply(name: str, operands: list[_Value], count: int) -> _Verdicts:
    if name in ("and", "or"):
        truths = np.array([each.truth() for each in operands])
        holds: Mask = np.all(truths, axis=0) if name == "and" else np.any(truths, axis=0)
        return holds.astype(np.int8)
    if len(operands) < 2:
        return np.zeros(count, dtype=np.int8)
    first, *others = operands
    found = np.array([_compared("=" if name == "in" else name, first, each) for each in others])
    if name == "in":
        is_any: Mask = np.any(found, axis=0)
        return is_any.astype(np.int8)
    verdicts: _Verdicts = found.min(axis=0)
    verdicts[np.any(found == _BROKEN, axis=0)] = _BROKEN
    return verdicts


def _compared(name: str, left: _Value, right: _Value) -> _Verdicts:
    compare = _COMPARE[name]
    if isinstance(left, _Numbers) and isinstance(right, _Numbers):
        holds: Mask = compare(left.numbers, right.numbers)
        return holds.astype(np.int8)
    ours, theirs = left.things(), right.things()
    width = len(theirs.objects)
    pairs, codes = np.unique(ours.codes * width + theirs.codes, return_inverse=True)
    told = [_one(compare, ours.objects[pair // width], theirs.objects[pair % width]) for pair in pairs.tolist()]
    return np.array(told, dtype=np.int8)[codes]


def _one(compare: Callable[[Any, Any], Any], left: object, right: object) -> int:
    try:
        return _TRUE if compare(left, right) else _FALSE
    except TypeError:
        return _BROKEN
