"""The interface between an agent and the drivers of its host's guests, and the loading of drivers by name."""

import inspect
from asyncio import CancelledError
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any, Protocol, TypeVar

import msgspec

from roost.compute.providers.held_allocations import Allocations
from roost.compute.providers.provider_tree import ProviderTree
from roost.errors import BadRequest, BadSettings, RoostError, quote_value
from roost.model.work.agent_terms import Capabilities, HostTerms, NodeResources
from roost.model.work.guest import GuestReport, GuestSpec, TransferTarget

# All errors of a driver or its libraries. Other exceptions must pass: a simulation ends processes with them.
DRIVER_ERRORS = (Exception, SystemExit, KeyboardInterrupt, GeneratorExit, CancelledError)
GROUP = "roost.drivers"  # entry points: functions or classes called with options and terms
_BUILT_IN = {"fake": "roost.compute.drivers.fake.driver:make", "libvirt": "roost.compute.drivers.libvirt.driver:make"}
_Options = TypeVar("_Options", bound=msgspec.Struct)


class Driver(Protocol):
    """Runs guests on the nodes of one host. Several threads may call it at once, but only one per guest.

    Agents may repeat a change of a guest: a second call with the same guest and operation does nothing. Besides the
    errors below, methods on a guest raise NotFound if the host lacks the guest, and Conflict if the guest must be
    stopped but runs, or the reverse.
    """

    @property
    def capabilities(self) -> Capabilities:
        """Its capabilities."""

    def start(self, host: str) -> None:
        """Begin to work for a host; called before all other methods.

        Raises:
            DriverNotReady: the hypervisor does not answer yet; try again.
            BadSettings: the driver can never work with these settings.
        """

    def nodes(self) -> list[str]:
        """Return the names of its nodes.

        Raises:
            DriverNotReady: the hypervisor does not answer. Every method on nodes raises it, too.
        """

    def is_node_gone(self, node: str) -> bool:
        """Return whether a former node of the host is permanently gone."""

    def resources(self, node: str) -> NodeResources:
        """Return the resources of a node and their use."""

    def update_provider_tree(self, tree: ProviderTree, node: str, allocations: Allocations | None = None) -> None:
        """Write the inventories of a node into a provider tree.

        The driver owns all inventories of the root, and its own child providers. Operators and other clients may add
        traits and further providers; the driver leaves these unchanged.

        Args:
            tree: edited in place; it contains the root provider of the node, named like the node.
            node: name of the node.
            allocations: allocations of all consumers in the tree, edited in place if inventories move; None:
                inventories must not move.

        Raises:
            ReshapeNeeded: inventories must move, and ``allocations`` is None; the tree is unchanged.
            ReshapeFailed: the allocations contradict the guests' use; tree and allocations are unchanged.
        """

    def metrics(self, node: str) -> dict[str, float]:
        """Return the measurements of a node, by name as in ``monitors``; times are totals in ns since its start."""

    def spawn(self, spec: GuestSpec, operation: str) -> None:
        """Build and start a guest; replace a guest of another operation, or an incomplete one.

        Raises:
            BuildFailed: another host may succeed; nothing of the guest remains.
            BuildAborted: no host can succeed; nothing of the guest remains. All methods for builds and moves raise
                these two errors.
        """

    def destroy(self, uuid: str, operation: str) -> None:
        """Remove a guest completely, if it exists."""

    def power(self, uuid: str, *, is_on: bool) -> None:
        """Start a guest, or stop it without removing it."""

    def rebuild(self, spec: GuestSpec, operation: str) -> None:
        """Replace the disk of a guest by a new one from an image."""

    def prepare(self, spec: GuestSpec, operation: str) -> TransferTarget:
        """Reserve resources for a guest from another host, or from this one; return its transfer target."""

    def send_disk(self, uuid: str, to: TransferTarget) -> None:
        """Send the disk of a stopped guest to its transfer target; the guest and its disk stay here, too."""

    def finish(self, spec: GuestSpec, operation: str) -> None:
        """Complete an arrived guest; start it if ``spec.is_on``."""

    def discard(self, uuid: str, operation: str) -> None:
        """Undo ``prepare`` and ``finish`` of an operation on this host; restore the guest replaced by ``finish``."""

    def settle(self, uuid: str, operation: str) -> None:
        """Make ``finish`` of an operation final: delete the data kept for ``discard``, if any."""

    def live_migrate(self, uuid: str, to: TransferTarget) -> None:
        """Move a running guest to its transfer target; on return it runs there, and nothing of it remains here."""

    def abort_migration(self, uuid: str) -> None:
        """Make a ``live_migrate`` in progress fail, if there is one."""

    def save(self, uuid: str) -> str:
        """Save the disk of a stopped guest as an image, and return the image's id."""

    def saved_images(self) -> list[str]:
        """Return the uuids of the guests with images, or parts of images, from ``save``.

        A host with shared storage returns the guests of all hosts that share it. A driver without images returns none.
        """

    def drop_saved_image(self, uuid: str) -> None:
        """Delete the saved image of a guest, if any, including that of a ``save`` in progress."""

    def inspect(self, uuid: str) -> GuestReport | None:
        """Return the report of a guest; None: there is none."""

    def guests(self) -> list[GuestReport]:
        """Return the reports of all guests, by uuid."""

    def console(self, uuid: str) -> str:
        """Return the end of a guest's console output."""


Maker = Callable[[Mapping[str, str], HostTerms], Driver]


@cache  # A scan of all installed packages is slow, and each agent of a fleet loads a driver.
def drivers() -> Mapping[str, EntryPoint]:
    """Return the available drivers by name: built-in ones, then those of entry points.

    Raises:
        BadSettings: two drivers have the same name.
    """
    found = {name: EntryPoint(name=name, value=value, group=GROUP) for name, value in _BUILT_IN.items()}
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value)):
        first = found.setdefault(entry.name, entry)
        if first.value != entry.value:
            raise BadSettings(f"driver {entry.name}", f"is defined twice, as {first.value} and as {entry.value}")
    return found


def load(name: str, options: Mapping[str, str], terms: HostTerms | None = None) -> Driver:
    """Create the driver with a name.

    Args:
        name: name of a built-in driver or an entry point.
        options: options of the driver, by name.
        terms: overcommit and reserves of the host; None: the defaults.

    Raises:
        BadSettings: there is no such driver, it cannot be imported or created, or it does not implement ``Driver``.
    """
    available = drivers()
    subject = f"driver {name}"
    if name not in available:
        raise BadSettings(subject, f"does not exist; the drivers are {', '.join(sorted(available))}")
    try:
        make: Maker = available[name].load()
    except (Exception, SystemExit) as error:  # A third-party driver may fail in any way.
        raise BadSettings(subject, f"cannot be imported: {type(error).__name__}: {error}") from error
    try:
        driver = make(options, terms or HostTerms())
    except RoostError:
        raise
    except (Exception, SystemExit) as error:  # As above.
        raise BadSettings(subject, f"cannot be created: {type(error).__name__}: {error}") from error
    problems = list(_problems(driver))
    if problems:
        raise BadSettings(subject, f"({available[name].value}) is not a driver: {'; '.join(problems)}")
    return driver


def read_options(name: str, kind: type[_Options], options: Mapping[str, str]) -> _Options:
    """Return the options of a driver as its own struct, with numbers and switches parsed from text.

    Raises:
        BadSettings: an option is unknown or invalid.
    """
    unknown = [key for key in options if key not in kind.__struct_fields__]
    if unknown:
        available = ", ".join(kind.__struct_fields__)
        raise BadSettings(f"driver {name}", f"has no option {', '.join(unknown)}; it has {available}")
    try:
        return msgspec.convert(dict(options), kind, strict=False)
    except msgspec.ValidationError as error:
        problem, _, key = str(error).replace("`", "").partition(" - at $.")
        raise BadSettings(f"driver {name}, option {key}" if key else f"driver {name}", problem) from None


def read_resources(node: str, reported: object) -> NodeResources:
    """Check a driver's report of the resources of a node, and return it as a struct.

    Raises:
        BadRequest: a key is missing, or of another type.
    """
    if isinstance(reported, NodeResources):
        return reported
    if not isinstance(reported, Mapping):
        raise BadRequest(f"the resources of node {node} must be a table, got {quote_value(reported)}")
    fields = {**reported}
    if fields.get("cpu_info", {}) is None:
        fields["cpu_info"] = {}
    missing = [each.name for each in msgspec.structs.fields(NodeResources) if each.required and each.name not in fields]
    if missing:
        raise BadRequest(f"the resources of node {node} lack {', '.join(missing)}")
    try:
        return msgspec.convert(fields, NodeResources)
    except msgspec.ValidationError as error:
        problem, _, key = str(error).replace("`", "").partition(" - at $.")
        detail = f"{key}: {problem}" if key else problem
        raise BadRequest(f"the resources of node {node} are invalid: {detail}") from None


def _problems(driver: Any) -> list[str]:
    """Describe the methods that a driver lacks, or has with another signature."""
    methods = {name: each for name, each in vars(Driver).items() if inspect.isfunction(each) and name[0] != "_"}
    found = []
    missing = [name for name in methods if not callable(getattr(driver, name, None))]
    if missing:
        found.append(f"it lacks {', '.join(missing)}")
    if not isinstance(getattr(driver, "capabilities", None), Capabilities):
        found.append("its capabilities are not Capabilities")
    for name, method in methods.items():
        parameters = list(inspect.signature(method).parameters.values())[1:]
        positional = [each.name for each in parameters if each.kind is not inspect.Parameter.KEYWORD_ONLY]
        keywords = {each.name: None for each in parameters if each.kind is inspect.Parameter.KEYWORD_ONLY}
        if name not in missing and not _accepts(getattr(driver, name), positional, keywords):
            found.append(f"{name} does not take {', '.join((*positional, *keywords)) or 'nothing'}")
    return found


def _accepts(method: Callable[..., object], positional: list[str], keywords: Mapping[str, object]) -> bool:
    try:
        signature = inspect.signature(method)
    except ValueError:  # The signature of an extension module may be unknown.
        return True
    try:
        signature.bind(*positional, **keywords)
    except TypeError:
        return False
    return True
