"""Extra specs of devices that an instance has for itself."""

from roost.compat.api.validation.extra_specs.extra_spec import ExtraSpecValidator


def register() -> list[ExtraSpecValidator]:
    """Return the validators of the namespace ``pci_passthrough``."""
    return [
        ExtraSpecValidator(
            name="pci_passthrough:alias",
            description="Aliases of devices and how many of each: name:count, several with commas.",
            value={"type": str, "pattern": r"[^:]+:\d+(?:\s*,\s*[^:]+:\d+)*"},
        )
    ]
