"""Extra specs of accelerators."""

from roost.compat.api.validation.extra_specs.extra_spec import ExtraSpecValidator


def register() -> list[ExtraSpecValidator]:
    """Return the validators of the namespace ``accel``."""
    return [
        ExtraSpecValidator(
            name="accel:device_profile",
            description="The device profile whose accelerators the instance gets.",
            value={"type": str},
        )
    ]
