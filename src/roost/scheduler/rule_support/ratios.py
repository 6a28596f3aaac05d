"""Settings in the form of lists ``name=number``."""

import math
from collections.abc import Iterable

from roost.errors import BadSettings, quote_value


def parse_finite(text: str) -> float:
    """Parse a finite number.

    Raises:
        ValueError: it is not a finite number.
    """
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text!r} is not finite")
    return number


def parse_ratios(pairs: Iterable[str], *, setting: str) -> tuple[dict[str, float], list[BadSettings]]:
    """Return the number of each name, and the invalid pairs.

    The numbers of a repeated name are added.

    Args:
        setting: section and name of the setting, for the errors.

    >>> ratios, bad_pairs = parse_ratios(["a=1", "b = -0.5", "c"], setting="metrics.weight_setting")
    >>> ratios, str(bad_pairs[0])
    ({'a': 1.0, 'b': -0.5}, "metrics.weight_setting: 'c' is ignored, because it is not name=number")
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
            bad_pairs.append(BadSettings(setting, f"{quote_value(pair)} is ignored, because it is not name=number"))
        else:
            ratios[name] = ratios.get(name, 0.0) + ratio
    return ratios, bad_pairs
