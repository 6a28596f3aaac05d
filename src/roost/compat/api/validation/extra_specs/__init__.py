"""What Nova has in ``nova.api.validation.extra_specs``: one module a namespace, and what they share."""

from roost.compat.api.validation.extra_specs import extra_spec as base

__all__ = ["base"]
