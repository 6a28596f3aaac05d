"""Counterpart of ``nova.api.validation.extra_specs``: one file per namespace, and their base."""

from roost.compat.api.validation.extra_specs import extra_spec as base

__all__ = ["base"]
