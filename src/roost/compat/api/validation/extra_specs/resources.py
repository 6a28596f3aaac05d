"""Extra specs that request amounts of resource classes."""

from roost.compat.api.validation.extra_specs.extra_spec import ExtraSpecValidator
from roost.model.names import standard_resource_classes


def register() -> list[ExtraSpecValidator]:
    """Return the validators of the namespace ``resources``."""
    standard = "|".join(sorted(standard_resource_classes()))
    return [
        ExtraSpecValidator(
            name="resources{group}:{resource_class}",
            description="The amount of a resource class, in the group of the suffix; 0 removes the flavor's amount.",
            value={"type": int, "min": 0},
            parameters=[
                {"name": "group", "pattern": r"[A-Za-z0-9_-]{0,64}"},
                {"name": "resource_class", "pattern": rf"CUSTOM_[A-Z0-9_]+|{standard}"},
            ],
        )
    ]
