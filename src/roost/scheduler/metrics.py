"""The setting that names metrics with their ratios: what the filter and the weigher of metrics share."""

import math
from collections.abc import Iterable
from typing import Annotated, NamedTuple

import msgspec

WeightSetting = Annotated[
    tuple[str, ...], msgspec.Meta(description="Metrics that count in the choice of a host, each as name=ratio.")
]


class Ratios(NamedTuple):
    """What the setting says."""

    of: dict[str, float]  # metric -> ratio, in the order of the setting; of two for one metric the later one
    warnings: tuple[str, ...]  # what in it cannot be read, a sentence each


def ratios(setting: Iterable[str]) -> Ratios:
    """Read the setting; what is not name=ratio is passed over.

    >>> ratios(["cpu=1.5", "io"]).of
    {'cpu': 1.5}
    """
    found, unread = {}, []
    for text in setting:
        name, _, number = text.partition("=")
        ratio = _finite(number)
        if name.strip() and ratio is not None:
            found[name.strip()] = ratio
        else:
            unread.append(f"metrics.weight_setting: {text[:70]!r} is not name=ratio and is passed over")
    return Ratios(found, tuple(unread))


def _finite(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
