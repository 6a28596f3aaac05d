import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tidy import repository

# Time, chance, ids and the outside world come in as arguments, so that the same question has the same answer.
FORBIDDEN = {"time", "datetime", "random", "logging", "os", "socket", "sqlite3", "asyncio", "threading"}

PURE = (
    "model/**/*.py",
    "engine/**/*.py",
    "scheduler/filters/*.py",
    "scheduler/weighers/*.py",
    "scheduler/shape/shape.py",
    "compute/inventory/admission.py",
    "compute/agent/state_machine.py",
    "compute/agent/queues.py",
    "compute/agent/tasks.py",
    "compute/inventory/host_use.py",
    "compute/drivers/libvirt/domain_xml.py",
    "compute/drivers/libvirt/host.py",
    "compute/drivers/libvirt/devices.py",
    "conductor/steps/*.py",
    "conductor/operation/step.py",
    "conductor/operation/reconcile.py",
)


def pure_files() -> list[Path]:
    """Return every file of the functional core, relative to the root."""
    return sorted(path.relative_to(repository.ROOT) for pattern in PURE for path in repository.SOURCE.glob(pattern))


def imported(tree: ast.Module) -> Iterator[str]:
    """Yield the top-level name of every absolute import, wherever in the file it is."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module.split(".")[0]


@pytest.mark.parametrize("path", pure_files(), ids=str)
def test_the_core_imports_neither_time_nor_chance_nor_the_outside_world(path):
    assert FORBIDDEN & set(imported(repository.tree(path))) == set()


def test_an_import_is_found_wherever_it_hides():
    tree = ast.parse("import os.path\ndef f():\n    from random import Random\nfrom . import time\n")
    assert set(imported(tree)) == {"os", "random"}
