"""Settings that are lists of a name and a number, each ``name=number``."""

import math
from collections.abc import Iterable

from roost.errors import BadSettings, quote_value


def parse_finite(text: str) -> float:
    """Read a finite number.

    Raises:
        ValueError: it is none.
    """
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text!r} is not finite")
    return number


def parse_ratios(pairs: Iterable[str], *, setting: str) -> tuple[dict[str, float], list[BadSettings]]:
    """Return the number of each name; what is no pair is dropped, and told.

    The numbers of a name that is there twice are added up.

    Args:
        setting: names the list in what is told, with its section.

    >>> found, dropped = parse_ratios(["a=1", "b = -0.5", "c"], setting="metrics.weight_setting")
    >>> found, str(dropped[0])
    ({'a': 1.0, 'b': -0.5}, "metrics.weight_setting: 'c' is dropped, since it is not name=number")
    """
    ratios: dict[str, float] = {}
    bad_pairs = []
    for pair in pairs:
        name, _, number = (part.strip() for part in pair.partition("="))
        try:
            ratio = parse_finite(number)
        except ValueError:
            ratio = None
        if ratio is None or not name:
            bad_pairs.append(BadSettings(setting, f"{quote_value(pair)} is dropped, since it is not name=number"))
        else:
            ratios[name] = ratios.get(name, 0.0) + ratio
    return ratios, bad_pairs
