"""The audit compares allocations with instance statuses, and operations with their instances."""

from contextlib import closing

import pytest

from roost.conductor.agents.power_sync import missing_fault
from roost.model.names import uuid_text
from roost.model.work.guest import fault_of_holder
from roost.model.work.work_rows import Put
from roost.store.audit import audit
from tests.contract.stores import VCPU, claim, commit, host, inventory, item, offer, provider, uuid_of
from tests.support.conductors.work_rows import migration, operation, status

ONE, TWO = uuid_of("consumer", 1), uuid_of("consumer", 2)
PROVIDER = uuid_text(uuid_of("provider", 1))
HELD = f"holds 1 VCPU on provider {PROVIDER}, and is neither an instance nor a migration that is under way"


def audit_rows(durable, *rows, claims):
    """Return the audit findings of a database with a host, its consumers, and work rows."""
    with closing(durable.open()) as store:
        assert commit(store, item(VCPU, provider(1), offer(1, cpu=8), host(1))) == [""]
        assert (
            commit(store, *(item(claim(number, (inventory(1), 1))) for number in range(1, claims + 1))) == [""] * claims
        )
        assert commit(store, item(work=map(Put, rows))) == [""]
    return [(each.check, each.subject, each.problem) for each in audit(durable.url)]


def instance_status(**changes):
    return status(1, **({"uuid": ONE, "status": "ACTIVE", "task": "", "host": "h1", "node": "p1"} | changes))


def work_on(**changes):
    return operation(7, **({"kind": "delete", "instance_uuid": ONE, "turn": 2} | changes))


@pytest.mark.parametrize(
    "rows",
    [
        [],
        [instance_status()],
        [instance_status(fault="the agent of h1 does not answer")],
        [instance_status(status="BUILD", host="", node="", operation_id=7), operation(7)],
        [instance_status(operation_id=7), work_on()],
        [instance_status(operation_id=7, host="elsewhere"), work_on()],
        [instance_status(), work_on(turn=0, step="waiting")],
        [instance_status(), migration(1, uuid=TWO, status="finished")],
        [instance_status(), work_on(outcome="done")],
    ],
)
def test_consistent_work_has_no_findings(durable, rows):
    assert audit_rows(durable, *rows, claims=2) == []


@pytest.mark.parametrize(
    ("rows", "finding"),
    [
        ([instance_status(status="DELETED", host="", node="")], ("orphan", f"consumer {uuid_text(ONE)}", HELD)),
        ([instance_status(status="ERROR", host="", node="")], ("orphan", f"consumer {uuid_text(ONE)}", HELD)),
        (
            [instance_status(uuid=TWO), migration(3, uuid=ONE, status="confirmed")],
            ("orphan", f"consumer {uuid_text(ONE)}", HELD),
        ),
        (
            [instance_status(uuid=uuid_of("nobody"))],
            ("status", "instance 1", "is ACTIVE on h1, but has no allocations"),
        ),
        (
            [instance_status(host="h2")],
            ("status", "instance 1", "is on h2 (p1) by its status, and on h1 (p1) by its allocations"),
        ),
        (
            [instance_status(operation_id=7)],
            ("operation", "instance 1", "waits for operation 7, which has ended or does not exist"),
        ),
        (
            [instance_status(operation_id=7), work_on(outcome="done")],
            ("operation", "instance 1", "waits for operation 7, which has ended or does not exist"),
        ),
        (
            [instance_status(fault=missing_fault(instance_status()))],
            (
                "guest",
                f"instance {uuid_text(ONE)}",
                "is ACTIVE, but its guest is missing on h1: rebuild or delete the instance",
            ),
        ),
        (
            [instance_status(fault=fault_of_holder("h2"))],
            (
                "guest",
                f"instance {uuid_text(ONE)}",
                f"is ACTIVE, but {fault_of_holder('h2')}",
            ),
        ),
        (
            [instance_status(), work_on()],
            ("operation", "operation 7", "is an open delete, but no instance waits for it"),
        ),
    ],
)
def test_inconsistent_work_is_found(durable, rows, finding):
    assert audit_rows(durable, *rows, claims=2) == [finding]
