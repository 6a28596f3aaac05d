"""Extra specs of the operating system of an instance."""

from roost.compat.api.validation.extra_specs.extra_spec import ExtraSpecValidator


def register() -> list[ExtraSpecValidator]:
    """Return the validators of the namespace ``os``."""
    return [
        ExtraSpecValidator(
            name="os:secure_boot",
            description="Whether the instance boots only signed software.",
            value={"type": str, "enum": ["disabled", "required"]},
        )
    ]
