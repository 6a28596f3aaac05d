"""Extra specs for the metadata of aggregates."""

from roost.compat.api.validation.extra_specs.extra_spec import ExtraSpecValidator


def register() -> list[ExtraSpecValidator]:
    """Return the validators of the namespace ``aggregate_instance_extra_specs``."""
    return [
        ExtraSpecValidator(
            name="aggregate_instance_extra_specs:{key}",
            description="The required value of a metadata key of an aggregate.",
            value={"type": str},
            parameters=[{"name": "key", "pattern": r".+"}],
        )
    ]
