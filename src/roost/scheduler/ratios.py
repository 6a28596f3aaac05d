"""Settings that are lists of a name and a number, each ``name=number``."""

import math
from collections.abc import Iterable


def finite(text: str) -> float:
    """Read a finite number.

    Raises:
        ValueError: it is none.
    """
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text!r} is not finite")
    return number


def parse_ratios(pairs: Iterable[str], *, setting: str) -> tuple[dict[str, float], list[str]]:
    """Return the number of each name; what is no pair is dropped, and said in a sentence each.

    The numbers of a name that is there twice are added up.

    Args:
        setting: names the list in the sentences, with its section.

    >>> parse_ratios(["a=1", "b = -0.5", "c"], setting="metrics.weight_setting")
    ({'a': 1.0, 'b': -0.5}, ["metrics.weight_setting: 'c' is dropped, since it is not name=number"])
    """
    found: dict[str, float] = {}
    warnings = []
    for pair in pairs:
        name, _, number = (part.strip() for part in pair.partition("="))
        try:
            ratio = finite(number)
        except ValueError:
            ratio = None
        if ratio is None or not name:
            warnings.append(f"{setting}: {pair!r} is dropped, since it is not name=number")
        else:
            found[name] = found.get(name, 0.0) + ratio
    return found, warnings
