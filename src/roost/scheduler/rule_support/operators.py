"""The language of requirements in flavors and aggregates: an operator and its operands."""

import math
import operator
from collections.abc import Callable

import numpy as np

from roost.engine.columns.types import Mask, Scores

# As in Nova, because existing flavors rely on it: ``=`` means at least, and ``<`` and ``>`` are not operators.
_NUMERIC: dict[str, Callable[[float, float], bool]] = {
    "=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
    ">=": operator.ge,
    "<=": operator.le,
}
_TEXTUAL: dict[str, Callable[[str, str], bool]] = {
    "s==": operator.eq,
    "s!=": operator.ne,
    "s<": operator.lt,
    "s<=": operator.le,
    "s>": operator.gt,
    "s>=": operator.ge,
    "<in>": operator.contains,
}
# Longest first, because some operators are prefixes of others.
_OPERATORS = sorted((*_NUMERIC, *_TEXTUAL, "<or>", "<all-in>"), key=len, reverse=True)
_ARRAYS = {
    "=": np.greater_equal,
    "==": np.equal,
    "!=": np.not_equal,
    ">=": np.greater_equal,
    "<=": np.less_equal,
}


def match(value: str | None, requirement: str) -> bool:
    """Return whether a value satisfies a requirement.

    Args:
        value: value of the host or the aggregate; None if it has none.
        requirement: an operator, a blank, and operands; or a literal.

    Raises:
        ValueError: the operator is numeric, and an operand is not a number.

    Source:
        nova/scheduler/filters/extra_specs_ops.py, match. A bare ``<or>`` is False here, and an error in Nova.

    >>> match("12", ">= 8"), match("8", "< 9"), match("avx sse", "<all-in> avx sse"), match("b", "<or> a <or> b")
    (True, False, True, True)
    """
    words = requirement.split()
    name = words[0] if words else ""
    operands = words[1:]
    if name not in _NUMERIC and name not in _TEXTUAL and name not in ("<or>", "<all-in>"):
        return value == requirement
    if value is None or not operands:
        return False
    if name == "<or>":
        return value in operands[::2]
    if name == "<all-in>":
        return all(operand in value for operand in operands)
    if name in _NUMERIC:
        return _NUMERIC[name](float(value), float(operands[0]))
    return _TEXTUAL[name](value, operands[0])


def matches(value: str | None, requirement: str) -> bool:
    """Return whether a value satisfies a requirement; False instead of an error if an operand is not a number."""
    try:
        return match(value, requirement)
    except ValueError:
        return False


def operator_without_blank(requirement: str) -> str:
    """Return the operator at the start of a requirement if no blank follows: such a requirement is plain text.

    >>> [operator_without_blank(text) for text in (">=24", "s==kvm", ">= 24", "small")]
    ['>=', 's==', '', '']
    """
    first = requirement.split(maxsplit=1)[0] if requirement.split() else ""
    if first in _OPERATORS:
        return ""
    return next((name for name in _OPERATORS if first.startswith(name)), "")


def impossible_reason(requirement: str) -> str:
    """Return the reason if no value can satisfy a requirement, else "".

    >>> impossible_reason(">= many"), impossible_reason("s=="), impossible_reason("<or> a"), impossible_reason("many")
    ("'many' is not a number", 's== has no operand', '', '')
    """
    name, *operands = requirement.split() or [""]
    if name not in _NUMERIC and name not in _TEXTUAL and name not in ("<or>", "<all-in>"):
        return ""
    if not operands:
        return f"{name} has no operand"
    try:
        return "" if name not in _NUMERIC or not math.isnan(float(operands[0])) else f"{operands[0]!r} is not a number"
    except ValueError:
        return f"{operands[0]!r} is not a number"


def match_numbers(values: Scores, requirement: str, *, are_whole: bool = True) -> Mask:
    """Return which numbers, written as text, satisfy a requirement.

    Args:
        values: float64, shape (values,).
        requirement: as for ``match``.
        are_whole: whether to write the numbers without a fraction.

    Returns:
        bool, shape (values,).

    >>> match_numbers(np.array([4.0, 16.0]), ">= 8").tolist(), match_numbers(np.array([4.0, 16.0]), "4").tolist()
    ([False, True], [True, False])
    """
    words = requirement.split()
    if len(words) > 1 and words[0] in _ARRAYS:
        try:
            operand = float(words[1])
        except ValueError:
            return np.zeros(len(values), dtype=np.bool_)
        verdicts: Mask = _ARRAYS[words[0]](values, operand)
        return verdicts
    distinct, where = np.unique(values, return_inverse=True)
    texts = [str(int(value)) if are_whole else str(value) for value in distinct.tolist()]
    mask: Mask = np.array([matches(text, requirement) for text in texts], dtype=np.bool_)[where]
    return mask
