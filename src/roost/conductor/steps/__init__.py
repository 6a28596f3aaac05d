"""The next step of each kind of operation, as a function of what is known: no time, no chance, no database."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from roost.conductor.moves import targets
from roost.conductor.operation.step import Commit, Desk, Step, View
from roost.conductor.steps import (
    build,
    clean,
    confirm,
    delete,
    drain,
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
from roost.errors import RoostError, StoreBroken
from roost.model.work.work_rows import OperationRow


class Steps(NamedTuple):
    """One kind of operations."""

    next_step: Callable[[View, Desk], Step]
    subjects: Callable[[OperationRow], tuple[bytes, ...]]  # the instances whose statuses the next step looks at
    # What follows where the scheduler gave no decision; None: it is not asked for one.
    refused: Callable[[View, Desk, RoostError], Commit] | None = None
    has_parts: bool = False  # whether the next step looks at the operations that are parts of it


def _its_own(operation: OperationRow) -> tuple[bytes, ...]:
    return () if operation.instance_uuid is None else (operation.instance_uuid,)


def steps_of(operation: OperationRow) -> Steps:
    """Return what an operation's kind does.

    Raises:
        StoreBroken: it is of no kind that is known here.
    """
    found = STEPS.get(operation.kind)
    if found is None:
        raise StoreBroken(f"operation {operation.id} is a {operation.kind!r}, which this program does not know")
    return found


STEPS: Mapping[str, Steps] = {
    "build": Steps(build.next_step, build.subjects, build.refused),
    "spawn": Steps(spawn.next_step, _its_own),
    "delete": Steps(delete.next_step, _its_own),
    "start": Steps(power.next_step, _its_own),
    "stop": Steps(power.next_step, _its_own),
    "reboot": Steps(power.next_step, _its_own),
    "rebuild": Steps(rebuild.next_step, _its_own),
    "shelve": Steps(shelve.next_step, _its_own),
    "offload": Steps(shelve.next_step, _its_own),
    "unshelve": Steps(unshelve.next_step, _its_own, unshelve.refused),
    "reset": Steps(reset.next_step, _its_own),
    "sync": Steps(reset.next_step, _its_own),
    "live_migrate": Steps(live_migrate.next_step, _its_own, targets.note_refusal),
    "evacuate": Steps(evacuate.next_step, _its_own, targets.note_refusal),
    "resize": Steps(move.next_step, _its_own, targets.note_refusal),
    "migrate": Steps(move.next_step, _its_own, targets.note_refusal),
    "confirm": Steps(confirm.next_step, _its_own),
    "revert": Steps(revert.next_step, _its_own),
    "drain": Steps(drain.next_step, drain.subjects, has_parts=True),
    "clean": Steps(clean.next_step, clean.subjects),
}
