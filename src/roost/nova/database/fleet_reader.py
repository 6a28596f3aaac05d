"""The changes of a Nova's fleet, from its API database and the databases of its cells.

A service reports every few seconds, but the fleet changes rarely. So the reader returns only what differs for a
decision: a service that stays alive changes nothing.
"""

import msgspec

from roost.errors import error_text
from roost.nova.database.aggregate_rows import AggregateRows
from roost.nova.database.cell_mappings import CellMapping, HostMappings, read_cell_mappings
from roost.nova.database.cell_reader import COMPARE_EVERY_S, CellChanges, CellReader
from roost.nova.database.database_link import DatabaseLink
from roost.nova.database.database_options import DatabaseOptions
from roost.nova.database.nova_fleet import FleetChanges, NovaAggregate
from roost.observe import log
from roost.ports import Clock

# A cell that answers delays a read by this at most; all silent ones together by less, and their answers wait for the
# next read.
_GRACE_S = 1.0
_SILENT_WAIT_S = 0.5


class FleetReader:
    """Reads Nova's databases; call it from one thread, about once a second.

    ``refresh_aggregates`` and ``forget`` may be called from any thread.

    Args:
        options: connections and times.
        clock: the clock of this machine; that of Nova's services should agree with it.
    """

    def __init__(self, options: DatabaseOptions, clock: Clock) -> None:
        self._options, self._clock = options, clock
        self._api = DatabaseLink(options.api_connection, subject="the API database", timeout_s=options.timeout_s)
        self._host_mappings = HostMappings()
        self._aggregates = AggregateRows()
        self._cells: dict[str, CellReader] = {}  # by uuid
        self._compared_at_s: float | None = None  # the small tables of the API database
        self._wants_aggregates = self._wants_all = True

    def read(self) -> FleetChanges:
        """Return the changes since the last read; at the first, everything.

        A cell that does not answer in time is in ``silent_cells``, and changes nothing.

        Raises:
            Unavailable: the API database cannot be read. Nothing is lost: the next read continues.
            BadSettings: the URL of the API database is invalid, or its driver is not installed.
        """
        now_s = self._clock.now_s()
        wants_all, self._wants_all = self._wants_all, False
        try:
            mappings, aggregates = self._read_api(now_s, wants_all=wants_all)
        except BaseException:
            self._wants_all |= wants_all
            raise
        left = self._match_cells(mappings)
        for reader in self._cells.values():
            mapped = self._host_mappings.hosts_of_cell.get(reader.mapping.id, frozenset())
            reader.start(now_s=now_s, mapped=mapped, wants_all=wants_all)
        changes, silent = self._take_changes()
        cells = tuple(each.cell for each in mappings)
        return msgspec.structs.replace(self._join(aggregates, left + changes), cells=cells, silent_cells=silent)

    def refresh_aggregates(self) -> None:
        """Read the aggregates completely at the next read."""
        self._wants_aggregates = True

    def forget(self) -> None:
        """Return everything at the next read; compute nodes and instances that it lacks are gone."""
        self._wants_all = True

    def close(self) -> None:
        """Close all connections."""
        self._api.close()
        for reader in self._cells.values():
            reader.close()

    def _read_api(
        self, now_s: float, *, wants_all: bool
    ) -> tuple[tuple[CellMapping, ...], tuple[NovaAggregate, ...] | None]:
        last_s = self._compared_at_s
        compares = wants_all or last_s is None or not 0 <= now_s - last_s < COMPARE_EVERY_S
        wants_aggregates, self._wants_aggregates = self._wants_aggregates, False
        if wants_all:
            self._aggregates.forget()
        try:
            with self._api.read() as connection:
                mappings = read_cell_mappings(connection, default_url=self._options.connection)
                self._host_mappings.read(connection, wants_all=compares)
                aggregates = self._aggregates.read(connection, wants_all=compares or wants_aggregates)
        except BaseException:
            self._wants_aggregates = True
            raise
        if compares:
            self._compared_at_s = now_s
        return mappings, aggregates

    def _match_cells(self, mappings: tuple[CellMapping, ...]) -> list[CellChanges]:
        """Create and drop readers to match the enabled cells; return the changes because of dropped ones."""
        enabled = {each.uuid: each for each in mappings if not each.cell.is_disabled}
        left = [self._cells.pop(uuid).leave() for uuid in self._cells.keys() - enabled.keys()]
        for uuid, mapping in enabled.items():
            if uuid in self._cells:
                self._cells[uuid].follow(mapping)
            else:
                self._cells[uuid] = CellReader(
                    mapping, timeout_s=self._options.timeout_s, down_time_s=self._options.service_down_time_s
                )
        return left

    def _take_changes(self) -> tuple[list[CellChanges], dict[str, str]]:
        """Wait for the cells; return their changes, and the reasons of silent ones."""
        timeout_s = self._options.timeout_s
        deadline_s = self._clock.elapsed_s() + timeout_s + _GRACE_S
        has_waited = False  # for a silent cell
        changes: list[CellChanges] = []
        silent: dict[str, str] = {}
        for uuid, reader in sorted(self._cells.items(), key=lambda each: each[1].is_silent):
            if reader.is_silent and not has_waited:
                has_waited = True
                deadline_s = min(deadline_s, self._clock.elapsed_s() + _SILENT_WAIT_S)
            problem = ""
            try:
                found = reader.take(wait_s=max(deadline_s - self._clock.elapsed_s(), 0.0))
            except Exception as error:  # noqa: BLE001  # A cell must not affect others, whatever it contains.
                problem = error_text(error)
            else:
                if found is None:
                    problem = f"{reader.mapping.subject} cannot be read: no answer within {timeout_s:g} s"
                else:
                    changes.append(found)
            if problem:
                silent[uuid] = problem
            _report_silence(reader, problem)
            reader.is_silent = bool(problem)
        return changes, silent

    def _join(self, aggregates: tuple[NovaAggregate, ...] | None, changes: list[CellChanges]) -> FleetChanges:
        """Join the changes of all cells."""
        readers = self._cells.values()
        # A host or an instance that moves to another cell is gone from only one of the two.
        gone = {uuid for each in changes for uuid in each.gone}
        gone_instances = {uuid for each in changes for uuid in each.gone_instances}
        versions = [each.service_version_min for each in readers if each.service_version_min]
        return FleetChanges(
            computes=tuple(compute for each in changes for compute in each.computes),
            gone=tuple(sorted(uuid for uuid in gone if not any(each.has_compute(uuid) for each in readers))),
            aggregates=aggregates,
            instances=tuple(instance for each in changes for instance in each.instances),
            unchanged=tuple(instance for each in changes for instance in each.unchanged),
            gone_instances=tuple(
                sorted(uuid for uuid in gone_instances if not any(each.has_instance(uuid) for each in readers))
            ),
            service_version_min=min(versions, default=0),
        )


def _report_silence(reader: CellReader, problem: str) -> None:
    """Log that a cell has become silent, or answers again."""
    cell = reader.mapping.cell
    if problem and not reader.is_silent:
        log.event("cell_silent", cell=cell.name or cell.uuid, problem=problem)
    elif reader.is_silent and not problem:
        log.event("cell_answers", cell=cell.name or cell.uuid)
