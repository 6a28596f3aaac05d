"""Extra specs of the random number generator of an instance."""

from roost.compat.api.validation.extra_specs.extra_spec import ExtraSpecValidator


def register() -> list[ExtraSpecValidator]:
    """Return the validators of the namespace ``hw_rng``."""
    return [
        ExtraSpecValidator(
            name="hw_rng:allowed", description="Whether the instance has a generator.", value={"type": bool}
        ),
        ExtraSpecValidator(
            name="hw_rng:rate_bytes",
            description="Bytes that the instance may read per period.",
            value={"type": int, "min": 0},
        ),
        ExtraSpecValidator(
            name="hw_rng:rate_period", description="The period, in milliseconds.", value={"type": int, "min": 0}
        ),
    ]
