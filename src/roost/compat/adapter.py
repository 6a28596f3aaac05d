"""The entrance to the compatibility with Nova. Many processes never need it, so its modules are imported on use."""

from collections.abc import Mapping

from roost.errors import BadRequest
from roost.scheduler.registry import RuleClass


def adapt(kind: type) -> RuleClass | None:
    """Return a rule class that runs a class written for Nova; None for other classes.

    Such a rule judges hosts one by one, so it is far slower than a rule over columns.
    """
    is_filter = hasattr(kind, "host_passes") or hasattr(kind, "filter_all")
    is_weigher = any(hasattr(kind, name) for name in ("_weigh_object", "_weight_object", "weigh_objects"))
    if not is_filter and not is_weigher:
        return None
    from roost.compat.adapted_rules import adapt_class

    return adapt_class(kind, is_filter=is_filter)


def extra_spec_problem(name: str, value: str) -> str:
    """Check an extra spec with the built-in and installed validators; return the problem; empty: it is valid."""
    from roost.compat.api.validation.extra_specs.validators import problem_of

    return problem_of(name, value)


def check_extra_specs(extra_specs: Mapping[str, str]) -> None:
    """Check extra specs with the built-in and installed validators.

    Raises:
        BadRequest: an extra spec is invalid.
    """
    problem = next(filter(None, (extra_spec_problem(name, value) for name, value in extra_specs.items())), "")
    if problem:
        raise BadRequest(problem)
