"""The state of a process in columns: the data of searches, rankings and claims."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from roost.engine.columns.change_log import Changes, FollowedArrays, HostCursor
from roost.engine.columns.column import Column
from roost.engine.columns.consumers import ConsumerIndex
from roost.engine.columns.host_columns import Hosts
from roost.engine.columns.image_counts import ImageCounts
from roost.engine.columns.inventory_columns import ClassColumns
from roost.engine.columns.label_bits import Labels
from roost.engine.columns.name_table import NameTable
from roost.engine.columns.trees import Providers
from roost.engine.columns.types import NO_INVENTORY, Amounts, Cells, Mask, Rows
from roost.model.evidence.lesson import Lesson
from roost.model.names import SHARING_TRAIT
from roost.model.stored_names import NamedVersion
from roost.model.writes import KEPT, ConsumerRow, InstanceRow


def allow_any_work() -> None:
    """Allow any amount of work: the check of a state without a budget."""


class Holder:
    """A consumer and its allocations. Immutable; a change creates a new one."""

    __slots__ = (
        "generation",
        "id",
        "instance",
        "kept",
        "project_id",
        "takes",
        "touched_s",
        "type_id",
        "user_id",
        "uuid",
    )

    def __init__(
        self, consumer: ConsumerRow, takes: list[tuple[int, int]], instance: InstanceRow | None, *, touched_s: float
    ) -> None:
        self.id = consumer.id
        self.uuid = consumer.uuid
        self.generation = consumer.generation
        self.project_id = consumer.project_id
        self.user_id = consumer.user_id
        self.type_id = consumer.type_id
        self.takes = takes  # inventory id, amount
        is_kept = instance is not None and instance.flavor_id == KEPT
        self.instance = None if is_kept else instance
        self.kept = instance if is_kept else None  # of a migration: the reserved place of its instance
        self.touched_s = touched_s  # time of the write, or of the read from the database; seconds since the epoch


class Group:
    """A server group: its rule, its places, and how many members each host has."""

    __slots__ = ("id", "kept", "limit", "members", "name", "places", "policy", "uuid")

    def __init__(self, *, group_id: int, uuid: str, policy: str, limit: int, name: str = "") -> None:
        self.id = group_id
        self.uuid = uuid
        self.name = name
        self.policy = policy
        self.limit = limit  # max_server_per_host
        self.places: dict[int, tuple[int, int]] = {}  # scope -> holder, members
        self.members: dict[int, int] = {}  # host row -> members
        self.kept: dict[int, int] = {}  # host row -> members that may return to it

    def fork(self) -> "Group":
        """Return an independent copy."""
        copy = Group(group_id=self.id, uuid=self.uuid, policy=self.policy, limit=self.limit, name=self.name)
        copy.places = dict(self.places)
        copy.members = dict(self.members)
        copy.kept = dict(self.kept)
        return copy


class Ledger(NamedTuple):
    """The columns that follow the use of one class."""

    used: Cells  # by provider row
    free: Cells  # by provider row
    best: Cells | None  # ``State.best_free`` by host row, once requested
    host_used: Cells | None  # host columns that count this class, if any
    host_free: Cells | None
    factor: int  # units of ``host_free`` per unit of the class


class State:
    """All columns of one process. Only ``columns.apply`` changes one, and ``engine.fill`` fills it."""

    __slots__ = (
        "_best",
        "_class_rows",
        "_host_arrays",
        "_host_trees",
        "_image_counts",
        "_ledgers",
        "aggregate_names",
        "aggregate_versions",
        "aggregates",
        "changes",
        "check",
        "class_ids",
        "classes",
        "consumer_index",
        "consumer_types",
        "content_versions",
        "counted",
        "documents",
        "followers",
        "groups",
        "groups_by_uuid",
        "holders",
        "holders_by_id",
        "hosts",
        "images",
        "inventory_version",
        "lessons",
        "membership",
        "metadata",
        "named",
        "names_touched_s",
        "now_s",
        "position",
        "providers",
        "shared_version",
        "stale_hosts",
        "tasks",
        "trait_ids",
        "traits",
    )

    def __init__(self) -> None:
        self.class_ids = NameTable()
        self.trait_ids = NameTable()
        self.consumer_types = NameTable()
        self.aggregates = NameTable()  # by uuid
        self.aggregate_names: dict[int, str] = {}
        self.aggregate_versions: dict[int, int] = {}
        self.metadata: dict[int, dict[str, str]] = {}  # of aggregates
        self.documents: dict[tuple[str, bytes], int] = {}  # kind, fingerprint -> id
        self.named: dict[tuple[str, str], NamedVersion] = {}  # noun, name -> newest version
        self.lessons: dict[str, Lesson] = {}  # newest version, by name
        self.images: dict[int, bytes] = {}  # bodies of the image documents
        self.providers = Providers()
        self.classes: dict[int, ClassColumns] = {}
        self.traits = Labels()
        self.membership = Labels()
        self.hosts = Hosts()
        self.groups: dict[int, Group] = {}
        self.groups_by_uuid: dict[str, Group] = {}
        self.holders: dict[bytes, Holder] = {}
        self.holders_by_id: dict[int, Holder] = {}
        # Instances with an I/O task: uuid -> id of the consumer whose host counts the task; 0: none.
        self.tasks: dict[bytes, int] = {}
        self.changes = Changes()
        self.inventory_version = 0
        self.shared_version = 0  # rises when the use of a provider outside all host trees changes
        self.stale_hosts: set[int] = set()  # host rows to recount
        # Class -> the host columns for its use and free amount, and units of the latter per unit of the class.
        self.counted: dict[int, tuple[Column, Column, int]] = {}
        self.content_versions: dict[tuple[str, int], int] = {}  # kind, provider row -> ``expected`` of the newest write
        self.position = 0  # of the newest applied change
        self.now_s = 0.0  # time of the current write, set by the caller: seconds since the epoch
        self.names_touched_s = 0.0  # time of the last change of a resource class or trait
        self.consumer_index: ConsumerIndex[Holder] | None = None  # see ``consumers``
        # Called regularly by work of request-dependent size; raises when the budget is exhausted.
        self.check: Callable[[], None] = allow_any_work
        self._best: dict[int, Column] = {}
        self._ledgers: dict[int, Ledger] = {}
        self._host_trees: tuple[Rows, Mask] | None = None
        self._class_rows: dict[int, Rows] = {}
        self._host_arrays: FollowedArrays | None = None  # see ``host_arrays``
        self._image_counts: ImageCounts | None = None  # see ``image_counts``
        # Objects of other packages that read this state with a cursor of their own, by resource class.
        self.followers: dict[int, object] = {}

    def name_table(self, kind: str) -> NameTable:
        """Return the name table of one kind: resource_class, trait, consumer_type."""
        match kind:
            case "resource_class":
                return self.class_ids
            case "trait":
                return self.trait_ids
            case _:
                return self.consumer_types

    def consumers(self) -> ConsumerIndex[Holder]:
        """Return the index of consumers by provider and by project, built on first use."""
        if self.consumer_index is None:
            self.consumer_index = ConsumerIndex(self.holders_by_id.values())
        return self.consumer_index

    def image_counts(self) -> ImageCounts:
        """Return the counts of instances by property of their image, built on first use."""
        if self._image_counts is None:
            instances = (holder.instance for holder in self.holders_by_id.values() if holder.instance is not None)
            row_of_id = self.hosts.row_of_id
            placed = ((each.image_id, row_of_id[each.host_id]) for each in instances if each.image_id)
            self._image_counts = ImageCounts(self.images, placed)
        return self._image_counts

    def count_image(self, image_id: int, host_row: int, by: int) -> None:
        """Add an instance of an image to a host's counts, or remove it with ``by`` -1."""
        if self._image_counts is not None and image_id:
            self._image_counts.count(image_id, host_row, by)

    def forget_image(self, image_id: int) -> None:
        """Drop the document of an image without instances."""
        self.images.pop(image_id, None)
        if self._image_counts is not None:
            self._image_counts.forget(image_id)

    def inventory(self, class_id: int) -> ClassColumns:
        """Return the columns of a class, created on first use."""
        columns = self.classes.get(class_id)
        if columns is None:
            columns = self.classes[class_id] = ClassColumns(len(self.providers))
        return columns

    def sharing_rows(self) -> list[int]:
        """Return the rows of sharing providers, in row order."""
        trait = self.trait_ids.id_of(SHARING_TRAIT)
        if trait is None:
            return []
        return [int(row) for row in np.flatnonzero(self.traits.mask_of(trait) & self.providers.alive.view)]

    def best_free(self, class_id: int) -> Amounts:
        """Return the largest free amount of a class on one provider of each host's tree.

        Returns:
            int64, shape (hosts,), in the unit of the class; ``NO_INVENTORY`` for a tree without inventory of it.
        """
        view: Amounts = self._best_column(class_id).view
        return view

    def best_free_cells(self, class_id: int) -> Cells:
        """Return ``best_free`` for access to single hosts; valid until ``changes.epoch`` moves."""
        return self._best_column(class_id).each

    def _best_column(self, class_id: int) -> Column:
        column = self._best.get(class_id)
        if column is None:
            self._ledgers.pop(class_id, None)
            column = self._best[class_id] = Column(np.int64, fill=NO_INVENTORY, rows=len(self.hosts))
            host_of, _ = self.host_trees()
            offering = np.flatnonzero((host_of >= 0) & (self.inventory(class_id).total.view > 0))
            np.maximum.at(column.data, host_of[offering], self.inventory(class_id).free.view[offering])
        return column

    def host_trees(self) -> tuple[Rows, Mask]:
        """Return the assignment of providers to hosts.

        Returns:
            The host row of every provider, -1 without a living host: intp, shape (providers,); and a mask of the
            hosts with more providers than their root: bool, shape (hosts,).
        """
        if self._host_trees is None:
            roots, count = self.hosts.provider_row.view, len(self.hosts)
            of_root = np.full(len(self.providers), -1, dtype=np.intp)
            of_root[roots] = np.where(self.hosts.alive.view, np.arange(count), -1)
            host_of: Rows = of_root[self.providers.root.view]
            host_of[~self.providers.alive.view] = -1
            inside = host_of[host_of >= 0]
            self._host_trees = host_of, np.bincount(inside, minlength=count) > 1
        return self._host_trees

    def class_rows(self, class_id: int) -> Rows:
        """Return the providers of a class in each host's tree.

        Returns:
            intp, shape (hosts, width), read-only: provider rows, ascending, then -1; the width is the largest number
            of providers of one host, at least 1. The same array until an inventory or a tree changes.
        """
        found = self._class_rows.get(class_id)
        if found is None:
            host_of, _ = self.host_trees()
            offering = np.flatnonzero((host_of >= 0) & (self.inventory(class_id).total.view > 0))
            offering = offering[np.argsort(host_of[offering], kind="stable")]
            hosts = host_of[offering]
            counts = np.bincount(hosts, minlength=len(self.hosts))
            places = np.arange(len(hosts)) - np.repeat(np.cumsum(counts) - counts, counts)
            found = np.full((len(self.hosts), max(int(counts.max(initial=0)), 1)), -1, dtype=np.intp)
            found[hosts, places] = offering
            found.flags.writeable = False
            self._class_rows[class_id] = found
        return found

    def follow(self) -> HostCursor:
        """Return a new reader of changed hosts."""
        return HostCursor(self.changes)

    @property
    def host_arrays(self) -> FollowedArrays:
        """The arrays that follow the changes of hosts."""
        if self._host_arrays is None:
            self._host_arrays = FollowedArrays(self.changes)
        return self._host_arrays

    def reset_derived(self) -> None:
        """Drop the derived values that a shallow copy shares with its original."""
        self._best, self._ledgers, self._class_rows, self._host_arrays, self.followers = {}, {}, {}, None, {}
        self.consumer_index = self._image_counts = None

    def forget_derived(self) -> None:
        """Drop values derived from inventories and trees; they are rebuilt on next use."""
        self._best.clear()
        self._ledgers.clear()
        self._class_rows.clear()
        self._host_trees = None

    def ledger(self, class_id: int) -> "Ledger":
        """Return all columns for the use of a class, for access to single rows; valid until ``forget_derived``."""
        ledger = self._ledgers.get(class_id)
        if ledger is None:
            columns, best, counted = self.inventory(class_id), self._best.get(class_id), self.counted.get(class_id)
            ledger = self._ledgers[class_id] = Ledger(
                columns.used.each,
                columns.free.each,
                None if best is None else best.each,
                None if counted is None else counted[0].each,
                None if counted is None else counted[1].each,
                0 if counted is None else counted[2],
            )
        return ledger

    def fork(self) -> "State":
        """Return an independent copy, for dry runs, replays and simulations."""
        copy = State()
        for name in (
            "class_ids",
            "trait_ids",
            "consumer_types",
            "aggregates",
            "providers",
            "traits",
            "membership",
            "hosts",
            "changes",
        ):
            setattr(copy, name, getattr(self, name).fork())
        for name in (
            "aggregate_names",
            "aggregate_versions",
            "content_versions",
            "counted",
            "documents",
            "holders",
            "holders_by_id",
            "images",
            "lessons",
            "named",
        ):
            setattr(copy, name, dict(getattr(self, name)))
        copy.tasks = dict(self.tasks)
        copy.metadata = {aggregate: dict(pairs) for aggregate, pairs in self.metadata.items()}
        copy.classes = {class_id: columns.fork() for class_id, columns in self.classes.items()}
        copy.groups = {group_id: group.fork() for group_id, group in self.groups.items()}
        copy.groups_by_uuid = {group.uuid: group for group in copy.groups.values()}
        copied = {id(column): copy.hosts.columns[name] for name, column in self.hosts.columns.items()}
        copy.counted = {
            class_id: (copied[id(used)], copied[id(free)], factor)
            for class_id, (used, free, factor) in self.counted.items()
        }
        copy.inventory_version = self.inventory_version
        copy.shared_version = self.shared_version
        copy.stale_hosts = set(self.stale_hosts)
        copy.position = self.position
        copy.check = self.check
        copy.now_s, copy.names_touched_s = self.now_s, self.names_touched_s
        return copy
