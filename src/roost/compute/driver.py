"""The seam between an agent and what runs guests on its host; drivers are found by name."""

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

# What a driver may raise, by itself or by what it calls. A simulation ends processes by errors of another kind.
RAISED = (Exception, SystemExit, KeyboardInterrupt, GeneratorExit, CancelledError)
GROUP = "roost.drivers"  # entry points: functions or classes that are called with options and terms
_OWN = {"fake": "roost.compute.drivers.fake.driver:make", "libvirt": "roost.compute.drivers.libvirt.driver:make"}
_Options = TypeVar("_Options", bound=msgspec.Struct)


class Driver(Protocol):
    """Runs guests on the nodes of one host. Threads may call it at the same time, for one guest one at a time.

    What changes a guest may be asked for again: with the same guest and operation it does nothing the second time.
    Besides the errors below, methods that name a guest raise NotFound where the host has none such, and Conflict
    where it runs and must not, or the other way round.
    """

    @property
    def capabilities(self) -> Capabilities:
        """What it can."""

    def start(self, host: str) -> None:
        """Begin to work for a host; comes before all else.

        Raises:
            DriverNotReady: what it speaks to does not answer yet; ask again.
            BadSettings: it can never work like this.
        """

    def nodes(self) -> list[str]:
        """Return the names of its nodes.

        Raises:
            DriverNotReady: so for all methods about nodes.
        """

    def is_node_gone(self, node: str) -> bool:
        """Say whether a node that was its own once will not come back."""

    def resources(self, node: str) -> NodeResources:
        """Return what a node has and has in use."""

    def update_provider_tree(self, tree: ProviderTree, node: str, allocations: Allocations | None = None) -> None:
        """Bring what a node offers into a tree of providers.

        All inventories of the root and of the providers that it makes are its own. Of traits and of other providers
        it touches what it put there.

        Args:
            tree: edited in place; the root of the node is there, named like the node.
            node: its name.
            allocations: of all that hold something in the tree, edited in place where inventories move; None: nothing
                may move.

        Raises:
            ReshapeNeeded: something must move, and ``allocations`` is None; the tree is as it was.
            ReshapeFailed: what is held is not what guests use; both are as they were.
        """

    def metrics(self, node: str) -> dict[str, float]:
        """Return what a node measures, by the names of ``agent.monitors``; times since it started, in ns."""

    def spawn(self, spec: GuestSpec, operation: str) -> None:
        """Build a guest and let it run, in place of an incomplete one, or of one by another operation.

        Raises:
            BuildFailed: another host may do; nothing of it is left. So for all methods that build or move.
            BuildAborted: no other host would do; nothing of it is left.
        """

    def destroy(self, uuid: str, operation: str) -> None:
        """Let nothing be left of a guest; none is fine."""

    def power(self, uuid: str, *, is_on: bool) -> None:
        """Let a guest run, or stop it and keep it."""

    def rebuild(self, spec: GuestSpec, operation: str) -> None:
        """Give a guest the disk of an image anew, in its place."""

    def prepare(self, spec: GuestSpec, operation: str) -> TransferTarget:
        """Keep room for a guest that is to come from a host, perhaps this one, and say where it is to arrive."""

    def send_disk(self, uuid: str, to: TransferTarget) -> None:
        """Send the disk of a stopped guest to where it is to arrive, and keep it here, too."""

    def finish(self, spec: GuestSpec, operation: str) -> None:
        """Make a guest of what has arrived; it runs if the specification says so."""

    def discard(self, uuid: str, operation: str) -> None:
        """Undo what ``prepare`` and ``finish`` of an operation did here; another guest of the uuid is as before."""

    def settle(self, uuid: str, operation: str) -> None:
        """Let what ``finish`` of an operation did here stay: what it kept to be undone goes; none is fine."""

    def live_migrate(self, uuid: str, to: TransferTarget) -> None:
        """Let a running guest run where it is to arrive; on return it does, and nothing of it is here."""

    def abort_migration(self, uuid: str) -> None:
        """Let the ``live_migrate`` of a guest that is under way fail; none is fine."""

    def save(self, uuid: str) -> str:
        """Save the disk of a stopped guest as an image, and return the id of that."""

    def saved_images(self) -> list[str]:
        """Return the uuids of the guests that it keeps images of which ``save`` made, or parts of such images.

        Hosts that share them are told all. A driver that keeps none returns nothing.
        """

    def drop_saved_image(self, uuid: str) -> None:
        """Let nothing be left of what a guest was saved as, also of a ``save`` that is under way; none is fine."""

    def inspect(self, uuid: str) -> GuestReport | None:
        """Return what there is of a guest; None: nothing."""

    def guests(self) -> list[GuestReport]:
        """Return what there is of any guest, by uuid."""

    def console(self, uuid: str) -> str:
        """Return what a guest wrote to its console, the end of it."""


Maker = Callable[[Mapping[str, str], HostTerms], Driver]


@cache  # Looking through all that is installed takes long, and a fleet of agents loads a driver each.
def drivers() -> Mapping[str, EntryPoint]:
    """Return the drivers there are, by name: our own, then those of entry points.

    Raises:
        BadSettings: two have one name.
    """
    found = {name: EntryPoint(name=name, value=value, group=GROUP) for name, value in _OWN.items()}
    for entry in sorted(entry_points(group=GROUP), key=lambda entry: (entry.name, entry.value)):
        known = found.setdefault(entry.name, entry)
        if known.value != entry.value:
            raise BadSettings(f"driver {entry.name}", f"is both {known.value} and {entry.value}")
    return found


def load(name: str, options: Mapping[str, str], terms: HostTerms | None = None) -> Driver:
    """Make the driver of a name.

    Args:
        name: of an entry point.
        options: what it is told; which there are it says itself.
        terms: on which the host offers what it has; None: those of the defaults.

    Raises:
        BadSettings: there is no such driver, it cannot be imported or made, or it lacks a part of the contract.
    """
    known = drivers()
    subject = f"driver {name}"
    if name not in known:
        raise BadSettings(subject, f"is none of {', '.join(sorted(known))}")
    try:
        make: Maker = known[name].load()
    except (Exception, SystemExit) as error:  # It may be somebody else's, and fail to import in any way.
        raise BadSettings(subject, f"cannot be imported: {type(error).__name__}: {error}") from error
    try:
        driver = make(options, terms or HostTerms())
    except RoostError:
        raise
    except (Exception, SystemExit) as error:  # So for making it.
        raise BadSettings(subject, f"cannot be made: {type(error).__name__}: {error}") from error
    problems = list(_problems(driver))
    if problems:
        raise BadSettings(subject, f"({known[name].value}) is no driver: {'; '.join(problems)}")
    return driver


def read_options(name: str, kind: type[_Options], options: Mapping[str, str]) -> _Options:
    """Return the options of a driver as its own struct, numbers and switches read from their texts.

    Raises:
        BadSettings: an option is unknown or wrong.
    """
    unknown = [key for key in options if key not in kind.__struct_fields__]
    if unknown:
        told = ", ".join(kind.__struct_fields__)
        raise BadSettings(f"driver {name}", f"has no option {', '.join(unknown)}; it has {told}")
    try:
        return msgspec.convert(dict(options), kind, strict=False)
    except msgspec.ValidationError as error:
        problem, _, key = str(error).replace("`", "").partition(" - at $.")
        raise BadSettings(f"driver {name}, option {key}" if key else f"driver {name}", problem) from None


def read_resources(node: str, told: object) -> NodeResources:
    """Return what a driver told of a node, which need not be of our making, or says why it cannot be meant.

    Raises:
        BadRequest: a key is missing, or of another type.
    """
    if isinstance(told, NodeResources):
        return told
    if not isinstance(told, Mapping):
        raise BadRequest(f"the resources of node {node} must be a table, got {quote_value(told)}")
    fields = {**told}
    if fields.get("cpu_info", {}) is None:
        fields["cpu_info"] = {}
    missing = [each.name for each in msgspec.structs.fields(NodeResources) if each.required and each.name not in fields]
    if missing:
        raise BadRequest(f"the resources of node {node} lack {', '.join(missing)}")
    try:
        return msgspec.convert(fields, NodeResources)
    except msgspec.ValidationError as error:
        problem, _, key = str(error).replace("`", "").partition(" - at $.")
        told_as = f"{key}: {problem}" if key else problem
        raise BadRequest(f"the resources of node {node} cannot be meant: {told_as}") from None


def _problems(driver: Any) -> list[str]:
    """Say what of the contract a driver lacks, or has in another form."""
    methods = {name: each for name, each in vars(Driver).items() if inspect.isfunction(each) and name[0] != "_"}
    found = []
    lacking = [name for name in methods if not callable(getattr(driver, name, None))]
    if lacking:
        found.append(f"it lacks {', '.join(lacking)}")
    if not isinstance(getattr(driver, "capabilities", None), Capabilities):
        found.append("its capabilities are none")
    for name, method in methods.items():
        wanted = list(inspect.signature(method).parameters.values())[1:]
        by_place = [each.name for each in wanted if each.kind is not inspect.Parameter.KEYWORD_ONLY]
        by_name = {each.name: None for each in wanted if each.kind is inspect.Parameter.KEYWORD_ONLY}
        if name not in lacking and not _takes(getattr(driver, name), by_place, by_name):
            found.append(f"{name} does not take {', '.join((*by_place, *by_name)) or 'nothing'}")
    return found


def _takes(method: Callable[..., object], by_place: list[str], by_name: Mapping[str, object]) -> bool:
    try:
        signature = inspect.signature(method)
    except ValueError:  # Of what is not written in Python nothing may be known.
        return True
    try:
        signature.bind(*by_place, **by_name)
    except TypeError:
        return False
    return True
