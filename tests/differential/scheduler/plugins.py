"""The reference's own classes as plug-ins of Roost, in a process whose Python has both."""

import json
import os
import subprocess
import sys
from typing import Any, Self

from tests.differential.scheduler import nova
from tests.differential.scheduler.compare import is_near
from tests.support.fleets.products import ROOT

Json = dict[str, Any]


class NovaPlugins:
    """A running Roost with the reference's classes; it stops with this object or this process."""

    def __init__(self) -> None:
        program = nova.python()
        assert program is not None, nova.HOW_TO_INSTALL
        self._process = subprocess.Popen(
            [program, "-m", "tests.differential.scheduler.serve_plugins"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            cwd=ROOT,
            env=os.environ | {"PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])},
        )
        names = self._read()
        self.kinds: list[str] = names["kinds"]  # names of the classes
        self.modules: list[str] = names["modules"]  # names of their modules

    def ask(self, pair: Json, *, filters: list[str], weighers: list[str]) -> Json:
        """Return Roost's results for a whole pair with these classes of the reference."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"pair": pair, "filters": filters, "weighers": weighers}) + "\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> Json:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "it ended; run `python -m tests.differential.scheduler.serve_plugins` by hand to see why"
        found: Json = json.loads(line)
        return found

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(timeout=20)
        self._process.stdout.close()


def differences(theirs: Json, ours: Json) -> list[str]:
    """Return the differences between the reference alone and its classes as plug-ins; none is intended."""
    if "refused" in ours:
        return [f"Roost refuses the pair: {ours['refused']}"]
    found = [
        f"{name}: {verdicts} by itself, {ours['filters'][name]} as a plug-in"
        for name, verdicts in theirs["filters"].items()
        if verdicts != ours["filters"][name]
    ]
    return found + [
        f"{name}: {weights} by itself, {ours['weighers'][name]} as a plug-in"
        for name, weights in theirs["weighers"].items()
        if not _are_near(weights, ours["weighers"][name])
    ]


def _are_near(theirs: Json, ours: Json) -> bool:
    if "error" in theirs or "error" in ours:
        return theirs.get("error") == ours.get("error")
    # A single host is not weighed.
    kinds = ("raw", "normalised", "totals") if len(theirs["raw"]) > 1 else ("raw", "normalised")
    return all(is_near(their, our) for kind in kinds for their, our in zip(theirs[kind], ours[kind], strict=True))


def copy_modules(folder: str) -> None:
    """Copy the modules of filters and weighers into packages with other names, like a site with modified rules."""
    script = (
        "import pathlib, shutil, sys, nova.scheduler as s\n"
        "here, to = pathlib.Path(s.__file__).parent, pathlib.Path(sys.argv[1])\n"
        "for name in ('filters', 'weights'):\n"
        "    (to / 'site_rules' / name).mkdir(parents=True)\n"
        "    (to / 'site_rules' / name / '__init__.py').touch()\n"
        "    for path in (here / name).glob('[a-z]*.py'):\n"
        "        if path.stem not in ('utils', 'extra_specs_ops'):\n"
        "            shutil.copy(path, to / 'site_rules' / name)\n"
        "(to / 'site_rules' / '__init__.py').touch()\n"
    )
    program = nova.python()
    assert program is not None, nova.HOW_TO_INSTALL
    subprocess.run([program, "-I", "-c", script, folder], check=True, stdout=sys.stderr)
