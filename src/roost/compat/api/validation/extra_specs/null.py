"""Extra specs in no namespace."""

from roost.compat.api.validation.extra_specs.extra_spec import ExtraSpecValidator


def register() -> list[ExtraSpecValidator]:
    """Return the validators of extra specs without a namespace."""
    return [
        ExtraSpecValidator(
            name="hide_hypervisor_id",
            description="The old name of hw:hide_hypervisor_id.",
            value={"type": bool},
            deprecated=True,
        ),
        ExtraSpecValidator(
            name="group_policy",
            description="Whether request groups must be on separate providers.",
            value={"type": str, "enum": ["isolate", "none"]},
        ),
    ]
