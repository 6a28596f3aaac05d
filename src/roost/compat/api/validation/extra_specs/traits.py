"""Extra specs that require or forbid traits."""

from roost.compat.api.validation.extra_specs.extra_spec import ExtraSpecValidator
from roost.model.names import standard_traits


def register() -> list[ExtraSpecValidator]:
    """Return the validators of the namespace ``trait``."""
    standard = "|".join(sorted(standard_traits()))
    return [
        ExtraSpecValidator(
            name="trait{group}:{trait}",
            description="Whether a trait is required or forbidden for providers of the suffix's group.",
            value={"type": str, "enum": ["forbidden", "required"]},
            parameters=[
                {"name": "group", "pattern": r"[A-Za-z0-9_-]{0,64}"},
                {"name": "trait", "pattern": rf"CUSTOM_[A-Z0-9_]+|{standard}"},
            ],
        )
    ]
