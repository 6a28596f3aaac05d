"""Counterpart of ``nova.weights``: weighs objects, scales the weights and adds them up."""

import inspect
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from roost.engine.ranking import ranks


def normalize(
    weight_list: Sequence[float], minval: float | None = None, maxval: float | None = None
) -> Sequence[float]:
    """Scale weights to 0..1; the default bounds are those of the list.

    >>> normalize([5, 10, 20], minval=0)
    [0.25, 0.5, 1.0]
    """
    if not weight_list:
        return ()
    low = float(min(weight_list) if minval is None else minval)
    high = float(max(weight_list) if maxval is None else maxval)
    scaled: list[float] = ranks.normalise(np.array(weight_list, dtype=np.float64), low=low, high=high).tolist()
    return scaled


class WeighedObject:
    """An object and its weight."""

    def __init__(self, obj: Any, weight: float) -> None:
        self.obj = obj
        self.weight = weight

    def __repr__(self) -> str:
        return f"<WeighedObject {self.obj!r}: {self.weight}>"


class BaseWeigher:
    """A weigher of objects of any kind; ``minval`` and ``maxval`` bound its weights."""

    minval: float | None = None
    maxval: float | None = None

    def weight_multiplier(self, host_state: Any = None) -> float:
        """Return the factor of the weigher for an object."""
        return 1.0

    def _weigh_object(self, obj: Any, weight_properties: Any) -> float:
        """Return the raw weight of one object; override this."""
        return float(self._weight_object(obj, weight_properties))

    def _weight_object(self, obj: Any, weight_properties: Any) -> float:
        """Alternative spelling of ``_weigh_object`` in some documents."""
        raise NotImplementedError

    def weigh_objects(self, weighed_obj_list: Sequence[WeighedObject], weight_properties: Any) -> list[float]:
        """Return the raw weights of all objects; override this only if they depend on each other."""
        weights = [self._weigh_object(each.obj, weight_properties) for each in weighed_obj_list]
        bounded = ranks.clamp(np.array(weights, dtype=np.float64), minval=self.minval, maxval=self.maxval)
        raw: list[float] = bounded.tolist()
        return raw

    def weight_objects(self, weighed_obj_list: Sequence[WeighedObject], weight_properties: Any) -> list[float]:
        """Alternative spelling of ``weigh_objects`` in some documents."""
        return self.weigh_objects(weighed_obj_list, weight_properties)


class BaseWeightHandler:
    """Runs weighers, given as instances or classes."""

    object_class = WeighedObject

    def get_weighed_objects(
        self, weighers: Iterable[Any], obj_list: Iterable[Any], weighing_properties: Any
    ) -> list[WeighedObject]:
        """Return the objects with the sums of their weights, best first; the order of equal objects is kept.

        With at most one object the weighers are skipped, and its weight is 0.
        """
        weighed = [self.object_class(obj, 0.0) for obj in obj_list]
        if len(weighed) <= 1:
            return weighed
        for each in weighers:
            weigher: Any = each() if inspect.isclass(each) else each
            has_other_spelling = type(weigher).weight_objects is not BaseWeigher.weight_objects
            weigh = weigher.weight_objects if has_other_spelling else weigher.weigh_objects
            scaled = normalize(weigh(weighed, weighing_properties), minval=weigher.minval, maxval=weigher.maxval)
            for weighed_object, weight in zip(weighed, scaled, strict=True):
                weighed_object.weight += multiplier_of(weigher, weighed_object.obj) * weight
        return sorted(weighed, key=lambda weighed_object: weighed_object.weight, reverse=True)

    get_weighted_objects = get_weighed_objects


def multiplier_of(weigher: Any, obj: Any) -> float:
    """Return a weigher's multiplier for an object; old weighers take no argument."""
    takes_object = bool(inspect.signature(weigher.weight_multiplier).parameters)
    return float(weigher.weight_multiplier(obj) if takes_object else weigher.weight_multiplier())
