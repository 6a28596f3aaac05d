"""Counterpart of ``nova.scheduler.filters.extra_specs_ops``: the operators of extra specs."""

from roost.scheduler.rule_support.operators import match

__all__ = ["match"]
