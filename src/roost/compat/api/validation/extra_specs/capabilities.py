"""Extra specs that are compared with what a host says of itself."""

from roost.compat.api.validation.extra_specs.extra_spec import ExtraSpecValidator


def register() -> list[ExtraSpecValidator]:
    """Return the validators of the namespace ``capabilities``."""
    return [
        ExtraSpecValidator(
            name="capabilities:{capability}",
            description="What an attribute of the host must be, nested ones named with further colons.",
            value={"type": str},
            parameters=[{"name": "capability", "pattern": r"[^:]+(?::[^:]+)*"}],
        )
    ]
