"""Extra specs of devices passed through to an instance."""

from roost.compat.api.validation.extra_specs.extra_spec import ExtraSpecValidator


def register() -> list[ExtraSpecValidator]:
    """Return the validators of the namespace ``pci_passthrough``."""
    return [
        ExtraSpecValidator(
            name="pci_passthrough:alias",
            description="Aliases of devices with counts: name:count, separated by commas.",
            value={"type": str, "pattern": r"[^:]+:\d+(?:\s*,\s*[^:]+:\d+)*"},
        )
    ]
