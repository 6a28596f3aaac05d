"""What the reference holds is copied, and Roost answers as the reference does."""

import itertools
from contextlib import contextmanager
from urllib.parse import quote

import pytest

import roost
from roost.app import import_placement
from roost.store.audit import audit
from tests.differential.compare import canonical
from tests.differential.exchange import ASKING, Connection, Request
from tests.differential.growing import Growing
from tests.differential.sequences import sequence

STEPS = 200
TOKEN = {"x-auth-token": "admin"}
# The commit that brings an excess is sound, and the audit names what exceeds.
ALLOWED = {"capacity", "units"}


@pytest.fixture(scope="module")
def theirs(reference_placement):
    """Return the reference, which lasts as long as this file's tests."""
    return reference_placement


def sources(theirs):
    """Return both addresses of the reference."""
    return [f"sqlite:///{theirs.folder / 'placement.sqlite'}", theirs.address]


def copy(source, database, *, is_dry_run=False):
    return import_placement(source, str(database), headers=TOKEN, is_dry_run=is_dry_run, progress=lambda *_: None)


@contextmanager
def there(theirs):
    """Ask the reference."""
    connection = Connection(theirs.address)

    def get(path):
        answer = connection.ask(Request(method="GET", path=path, headers=ASKING))
        assert answer.status == 200, (path, answer)
        return answer.document

    yield get
    connection.close()


@contextmanager
def here(database):
    """Ask what was copied."""
    with roost.PlacementDirect(str(database), latest_microversion=True) as client:

        def get(path):
            answer = client.get(path)
            assert answer.status_code == 200, (path, answer.text)
            return answer.json()

        yield get


def everything(get):
    """Yield every question that shows something, with its answer."""
    providers = get("/resource_providers")
    yield "/resource_providers", providers
    consumers, projects = set(), set()
    for provider in sorted(providers["resource_providers"], key=lambda each: each["uuid"]):
        path = f"/resource_providers/{provider['uuid']}"
        yield path, get(path)
        for part in ("inventories", "aggregates", "traits", "usages", "allocations"):
            yield f"{path}/{part}", get(f"{path}/{part}")
        consumers |= set(get(f"{path}/allocations")["allocations"])
    for consumer in sorted(consumers):
        found = get(f"/allocations/{consumer}")
        projects.add((found["project_id"], found["user_id"]))
        yield f"/allocations/{consumer}", found
    for project, user in sorted(projects):
        for path in (
            f"/usages?project_id={quote(project)}",
            f"/usages?project_id={quote(project)}&user_id={quote(user)}",
        ):
            yield path, get(path)
    for path in ("/resource_classes", "/traits", "/traits?associated=true"):
        yield path, get(path)
    for query in ("VCPU:1", "VCPU:1,MEMORY_MB:1", "DISK_GB:1"):
        yield query, get(f"/allocation_candidates?resources={query}")


def same(theirs, database):
    """Compare every answer of both."""
    with here(database) as ours, there(theirs) as other:
        for (path, mine), (_, yours) in itertools.zip_longest(everything(ours), everything(other)):
            assert canonical(mine) == canonical(_tidied(yours)), path
    assert {finding.check for finding in audit(str(database))} <= ALLOWED


def _tidied(answer):
    """Let nothing reserve more than there is: what a reshape may leave there, and is brought as all of it reserved."""
    for record in answer.get("inventories", {}).values():
        record["reserved"] = min(record["reserved"], record["total"])
    return answer


def is_idle(done):
    """Return whether an import changed nothing."""
    return all(not (each.created or each.changed or each.removed) for each in (done.providers, done.consumers))


@pytest.mark.differential
@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("way", [0, 1], ids=["sql", "http"])
def test_imported_copy_answers_like_its_source(theirs, seed, way, tmp_path):
    growing = Growing(theirs, sequence(seed, STEPS))
    database = tmp_path / "roost.db"
    for steps in (STEPS // 2, STEPS // 4, STEPS):
        growing.run(steps)
        source = sources(theirs)[way]
        assert copy(source, database, is_dry_run=True).verified is None
        done = copy(source, database)
        assert done.verified.is_equal, done.verified
        assert is_idle(copy(source, database))
        same(theirs, database)
    growing.side.close()
