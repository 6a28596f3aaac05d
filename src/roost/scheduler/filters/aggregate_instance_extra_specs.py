"""aggregate_instance_extra_specs: hosts in aggregates that are what the flavor wants."""

from collections.abc import Hashable, Iterator
from functools import partial
from typing import ClassVar

import msgspec
import numpy as np

from roost.engine.columns.types import Mask
from roost.model.flavor import Flavor
from roost.scheduler.framework.host_view import HostView
from roost.scheduler.framework.plugin import NoOptions, Reads
from roost.scheduler.framework.spec import Spec
from roost.scheduler.rule_support.aggregate_metadata import match_aggregates
from roost.scheduler.rule_support.operators import impossible_reason, matches

_SCOPE = "aggregate_instance_extra_specs"


class AggregateInstanceExtraSpecs:
    """Keep hosts whose aggregates have, for each extra spec, a value that it wants.

    Extra specs count without a scope, or in the scope ``aggregate_instance_extra_specs``. Those without one are read
    by ``compute_capabilities`` too: a host in no aggregate fails them here.

    Source:
        nova/scheduler/filters/aggregate_instance_extra_specs.py.
    """

    name: ClassVar = "aggregate_instance_extra_specs"
    nova_name: ClassVar = "AggregateInstanceExtraSpecsFilter"
    section: ClassVar = "filter_scheduler"
    options: ClassVar[type[msgspec.Struct]] = NoOptions
    run_filter_once_per_request: ClassVar = True
    run_on_rebuild: ClassVar = False

    def __init__(self, options: NoOptions) -> None:
        self._options = options

    def reads(self, spec: Spec) -> Reads:
        """Say when a verdict has to be made again."""
        return "facts"

    def concerns(self, spec: Spec) -> bool:
        """Say whether any host can be refused: only if the flavor has such extra specs."""
        return any(True for _ in _requirements(spec.flavor))

    def verdict_key(self, spec: Spec) -> Hashable:
        """Return what of the request a verdict depends on: those extra specs."""
        return tuple(sorted(_requirements(spec.flavor)))

    def keep(self, hosts: HostView, spec: Spec) -> Mask:
        """Keep hosts that match them all."""
        verdicts: Mask = np.ones(len(hosts), dtype=np.bool_)
        for key, wanted in _requirements(spec.flavor):
            _, has_value = match_aggregates(hosts, key, partial(_matches, wanted=wanted))
            verdicts &= has_value
        return verdicts

    def warnings(self, hosts: HostView, spec: Spec) -> list[str]:
        """Say which wishes no aggregate can match, since they cannot be read."""
        read = {key: wanted for key, wanted in spec.flavor.extra_specs.items() if _is_read(key)}
        told = [(key, wanted, impossible_reason(wanted)) for key, wanted in read.items()]
        return [f"extra spec {key}={wanted!r} refuses all hosts: {why}" for key, wanted, why in told if why]

    def reason(self, spec: Spec) -> str:
        """Say what refused hosts lack."""
        wishes = "; ".join(f"{key} {wanted}" for key, wanted in _requirements(spec.flavor))
        return f"are in no aggregate with: {wishes}"


def _requirements(flavor: Flavor) -> Iterator[tuple[str, str]]:
    for key, wanted in flavor.extra_specs.items():
        if _is_read(key):
            yield key.removeprefix(f"{_SCOPE}:"), wanted


def _is_read(key: str) -> bool:
    scope, colon, _ = key.partition(":")
    return not colon or scope == _SCOPE


def _matches(value: str, *, wanted: str) -> bool:
    return matches(value, wanted)
