import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tidy import repository

# Time, randomness, IDs and I/O come in as arguments, so that equal inputs give equal results.
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
    "conductor/steps/batches/*.py",
    "conductor/operation/step.py",
    "conductor/operation/reconcile.py",
)


def pure_files() -> list[Path]:
    """Return every file of the functional core, relative to the root."""
    return sorted(path.relative_to(repository.ROOT) for pattern in PURE for path in repository.SOURCE.glob(pattern))


def imported_modules(tree: ast.Module) -> Iterator[str]:
    """Yield the top-level name of every absolute import, at any depth."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.split(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield node.module.split(".")[0]


@pytest.mark.parametrize("path", pure_files(), ids=str)
def test_pure_module_imports_no_clock_randomness_or_io(path):
    assert FORBIDDEN & set(imported_modules(repository.tree(path))) == set()


def test_imports_are_found_at_any_depth():
    tree = ast.parse("import os.path\ndef f():\n    from random import Random\nfrom . import time\n")
    assert set(imported_modules(tree)) == {"os", "random"}
