"""Extra specs that limit the resource use of an instance."""

from roost.compat.api.validation.extra_specs.extra_spec import ExtraSpecValidator

_SHARED = {"cpu": "processors", "memory": "memory", "disk_io": "disk operations", "vif": "network interfaces"}


def register() -> list[ExtraSpecValidator]:
    """Return the validators of the namespace ``quota``."""
    return [*_processors(), *_shares(), *_disk(), *_network()]


def _number(name: str, description: str) -> ExtraSpecValidator:
    return ExtraSpecValidator(name=f"quota:{name}", description=description, value={"type": int, "min": 0})


def _processors() -> list[ExtraSpecValidator]:
    return [
        _number("cpu_shares", "The weight of the instance among the instances of its host."),
        _number("cpu_period", "The period of the quota, in microseconds."),
        ExtraSpecValidator(
            name="quota:cpu_quota",
            description="Processor time per period, in microseconds; negative: unlimited.",
            value={"type": int},
        ),
    ]


def _shares() -> list[ExtraSpecValidator]:
    return [each for name, noun in _SHARED.items() for each in _shares_of(name, noun)]


def _shares_of(name: str, noun: str) -> list[ExtraSpecValidator]:
    return [
        _number(f"{name}_limit", f"The upper limit of {noun} for the instance."),
        ExtraSpecValidator(
            name=f"quota:{name}_reservation",
            description=f"The guaranteed amount of {noun} for the instance.",
            value={"type": int},
        ),
        ExtraSpecValidator(
            name=f"quota:{name}_shares_level",
            description=f"The weight of the instance in a shortage of {noun}.",
            value={"type": str, "enum": ["custom", "high", "low", "normal"]},
        ),
        _number(f"{name}_shares_share", f"The weight for the custom level of {noun}."),
    ]


def _disk() -> list[ExtraSpecValidator]:
    return [
        _number(f"disk_{what}_{unit}_sec", f"Disk {unit} per second, {what}.")
        for what in ("read", "write", "total")
        for unit in ("bytes", "iops")
    ]


def _network() -> list[ExtraSpecValidator]:
    return [
        _number(f"vif_{way}_{bound}", f"The {bound} of {way} traffic, in kilobytes per second (burst: kilobytes).")
        for way in ("inbound", "outbound")
        for bound in ("average", "peak", "burst")
    ]
