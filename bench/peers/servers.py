"""Both servers on databases of their own: one process each, SQLite, every commit flushed to the disk."""

import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.peers import worlds
from bench.peers.worlds import World
from tests.differential import reference
from tests.support.fleets.products import ROOT, command, environ

_WAITRESS = ROOT / ".cache" / "waitress"
# What helps the reference with wide trees is switched on where it is measured with them.
_SETTINGS = """\
[api]
auth_strategy = noauth2
[placement_database]
connection = sqlite:///{database}
sync_on_startup = True
[placement]
max_allocation_candidates = {candidates_max}
[workarounds]
optimize_for_wide_provider_trees = {is_wide}
"""


def prepare() -> None:
    """Install the reference, unless ``ROOST_REFERENCE_PLACEMENT`` names a Python that has it, and waitress."""
    reference.install()
    if not _WAITRESS.exists():
        pip = (sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "install")
        subprocess.run([*pip, "--target", _WAITRESS, "waitress>=3"], check=True)


@contextmanager
def theirs(folder: Path, world: World, *, is_wide: bool = False) -> Iterator[str]:
    """Serve the reference over a world; give its address."""
    folder.mkdir()
    database = folder / "placement.sqlite"
    settings = _SETTINGS.format(database=database, candidates_max=1_000 if is_wide else -1, is_wide=is_wide)
    (folder / "placement.conf").write_text(settings)
    words = [str(reference.python()), "-P", str(Path(__file__).with_name("serving_reference.py")), str(folder)]
    environment = {**os.environ, "PYTHONPATH": str(_WAITRESS)}
    with _served(words, environment):
        pass  # The first start creates the tables and the standard names.
    worlds.write_theirs(world, database)
    with _served(words, environment) as address:
        yield address


@contextmanager
def ours(folder: Path, world: World) -> Iterator[str]:
    """Serve Roost over a world; give its address."""
    folder.mkdir()
    worlds.write_ours(world, folder)
    words = command("placement", "--listen", "127.0.0.1:0", "--database", folder / "roost.db")
    with _served(words, environ()) as address:
        yield address


@contextmanager
def _served(words: list[str], environment: dict[str, str]) -> Iterator[str]:
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        try:
            said = process.stdout.readline()
            if not said.startswith("listening on "):
                raise SystemExit(f"{' '.join(words)} does not start: {said}")
            yield said.split()[-1].removeprefix("http://")
        finally:
            process.stdin.close()
            process.terminate()
