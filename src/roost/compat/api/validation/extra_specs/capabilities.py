"""Extra specs for the attributes of hosts."""

from roost.compat.api.validation.extra_specs.extra_spec import ExtraSpecValidator


def register() -> list[ExtraSpecValidator]:
    """Return the validators of the namespace ``capabilities``."""
    return [
        ExtraSpecValidator(
            name="capabilities:{capability}",
            description="The required value of a host attribute; colons separate the names of nested attributes.",
            value={"type": str},
            parameters=[{"name": "capability", "pattern": r"[^:]+(?::[^:]+)*"}],
        )
    ]
