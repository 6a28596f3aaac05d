"""Extra specs of the video device of an instance."""

from roost.compat.api.validation.extra_specs.extra_spec import ExtraSpecValidator


def register() -> list[ExtraSpecValidator]:
    """Return the validators of the namespace ``hw_video``."""
    return [
        ExtraSpecValidator(
            name="hw_video:ram_max_mb",
            description="The maximum video memory of an image, MiB.",
            value={"type": int, "min": 0},
        )
    ]
