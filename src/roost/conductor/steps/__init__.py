"""The kinds of operations: one file per kind, with its table of steps. Steps use no clock, random numbers or database.

Similar kinds share a file, such as start, stop and reboot in ``power``; ``TABLES`` has all kinds.
"""

from collections.abc import Mapping
from typing import Any

from roost.conductor.operation.step_table import Table
from roost.conductor.steps import (
    build,
    clean,
    confirm,
    delete,
    evacuate,
    live_migrate,
    move,
    power,
    rebuild,
    reset,
    revert,
    shelve,
    spawn,
    unshelve,
)
from roost.conductor.steps.batches import apply_plan, drain
from roost.errors import StoreBroken
from roost.model.work.work_rows import OperationRow

TABLES: Mapping[str, Table[Any]] = {
    "build": build.TABLE,
    "spawn": spawn.TABLE,
    "delete": delete.TABLE,
    "start": power.TABLE,
    "stop": power.TABLE,
    "reboot": power.TABLE,
    "rebuild": rebuild.TABLE,
    "shelve": shelve.TABLE,
    "offload": shelve.OFFLOAD_TABLE,
    "unshelve": unshelve.TABLE,
    "reset": reset.TABLE,
    "sync": reset.SYNC_TABLE,
    "live_migrate": live_migrate.TABLE,
    "evacuate": evacuate.TABLE,
    "resize": move.RESIZE_TABLE,
    "migrate": move.TABLE,
    "confirm": confirm.TABLE,
    "revert": revert.TABLE,
    "drain": drain.TABLE,
    "apply": apply_plan.TABLE,
    "clean": clean.TABLE,
}


def table_of(operation: OperationRow) -> Table[Any]:
    """Return the table of an operation's kind.

    Raises:
        StoreBroken: the kind is not known here.
    """
    table = TABLES.get(operation.kind)
    if table is None:
        raise StoreBroken(f"operation {operation.id} is a {operation.kind!r}, which this program does not know")
    return table
