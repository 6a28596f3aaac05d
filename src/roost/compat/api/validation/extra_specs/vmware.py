"""Extra specs of VMware hosts."""

from roost.compat.api.validation.extra_specs.extra_spec import ExtraSpecValidator


def register() -> list[ExtraSpecValidator]:
    """Return the validators of the namespace ``vmware``."""
    return [
        ExtraSpecValidator(
            name="vmware:hw_version", description="Version of the virtual hardware.", value={"type": str}
        ),
        ExtraSpecValidator(
            name="vmware:storage_policy", description="Policy for the choice of a datastore.", value={"type": str}
        ),
    ]
