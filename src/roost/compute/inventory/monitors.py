"""Monitors: the measurements of a host, by the names that weighers and filters use."""

from collections.abc import Mapping, Sequence

from roost.compute.driver import Driver
from roost.errors import BadSettings
from roost.model.names import RATIO_MAX, is_text
from roost.observe import log

_NAMES = {"cpu.virt_driver": "cpu.", "virt_driver": "cpu."}  # monitor -> prefix of its metrics
_KINDS = ("user", "kernel", "idle", "iowait")


class Monitors:
    """The monitors of one host.

    Monitor ``cpu.virt_driver`` reports the driver's measurements of the processor: ``cpu.frequency`` in MHz; times
    ``cpu.user.time``, ``cpu.kernel.time``, ``cpu.idle.time`` and ``cpu.iowait.time`` in ns; and shares of the time
    since the last reading, 0..1: ``cpu.<kind>.percent`` of each kind, and ``cpu.percent`` of all but idle time. The
    driver's own shares are kept as they are; values that the server would refuse are left out.

    Args:
        names: names of the enabled monitors, as in the setting ``compute_monitors``.

    Raises:
        BadSettings: a monitor does not exist.
    """

    def __init__(self, names: Sequence[str]) -> None:
        unknown = [name for name in names if name not in _NAMES]
        if unknown:
            raise BadSettings("compute_monitors", f"there is no monitor {', '.join(unknown)}, only cpu.virt_driver")
        self._prefixes = tuple({_NAMES[name] for name in names})
        self._before: dict[str, dict[str, float]] = {}  # times by kind, of each node

    def metrics(self, driver: Driver, node: str) -> dict[str, float]:
        """Return the measurements of a node; if the driver fails, log its error and return none."""
        if not self._prefixes:
            return {}
        try:
            measured = {
                name: float(value)
                for name, value in driver.metrics(node).items()
                if name.startswith(self._prefixes) and is_text(name, length_max=255) and abs(value) <= RATIO_MAX
            }
        except Exception as error:  # noqa: BLE001  # A third-party driver may raise anything; the agent works without metrics.
            log.fault(f"metrics of {node}", error)
            return {}
        times = {kind: measured[f"cpu.{kind}.time"] for kind in _KINDS if f"cpu.{kind}.time" in measured}
        shares = _shares(self._before.get(node, {}), times)
        self._before[node] = times
        return shares | measured


def _shares(before: Mapping[str, float], now: Mapping[str, float]) -> dict[str, float]:
    """Return the shares of time between two readings, or since a restart of the host; empty if no time passed."""
    if len(now) < len(_KINDS):
        return {}
    # After a restart of the host its counters begin at 0.
    is_later = all(now[kind] >= before.get(kind, 0.0) for kind in _KINDS)
    spent = {kind: now[kind] - (before.get(kind, 0.0) if is_later else 0.0) for kind in _KINDS}
    total = sum(spent.values())
    if total <= 0:
        return {}
    shares = {f"cpu.{kind}.percent": spent[kind] / total for kind in _KINDS}
    return shares | {"cpu.percent": (total - spent["idle"]) / total}
