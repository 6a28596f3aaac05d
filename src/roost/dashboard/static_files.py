"""The files of the page, in memory: read once, compressed once, named by their contents."""

import base64
import gzip
import hashlib
import json
import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.resources.abc import Traversable

from roost.errors import RoostError

_TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
    ".txt": "text/plain; charset=utf-8",
}
_PAGE = "page.html"
# The modules that the page imports by name, and their files.
_IMPORTS = "imports.json"
# The first page needs two modules and all that they import; a browser would find them one level after the other.
_EARLY, _MAIN = "page/early.js", "main.js"
# The modules in few files, which `hatch_build.py` makes; this file has the hash of each module at that time.
_BUNDLE, _SOURCES = "bundle/", "sources.json"
_IMPORT = re.compile(r"""^(?:import|export)\b[^"';]*["']([^"']+)["']""", re.MULTILINE)


class LibrariesMissing(RoostError):
    """The libraries of the page are not in this installation."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticFile:
    """A file, and its body for clients that accept gzip."""

    content_type: str
    body: bytes
    compressed: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """The page and its files.

    Args:
        page: the HTML; its import map is known to browsers by ``script_hash``.
        version: hash of all files, a part of their paths: a browser keeps each file for ever.
        by_name: files by their path below ``static/``.
    """

    page: StaticFile
    script_hash: str
    version: str
    by_name: Mapping[str, StaticFile]


def read_files(folder: Traversable, *, prefix: str, facts: Mapping[str, str]) -> Files:
    """Read the page and its files.

    Args:
        folder: has ``page.html``, modules, styles and libraries.
        prefix: path of the dashboard, such as ``/ui``.
        facts: facts of the server for the page.

    Raises:
        LibrariesMissing: the libraries are not there.
    """
    bodies = dict(_walk(folder, ""))
    imports: dict[str, str] = json.loads(folder.joinpath(_IMPORTS).read_bytes())
    missing = [name for name in imports.values() if name not in bodies]
    if missing:
        raise LibrariesMissing(f"the dashboard has no {missing[0]}: run `make web`, or install a wheel of Roost")
    has_bundle = _is_bundle_current(folder, bodies)
    if not has_bundle:
        bodies = {name: body for name, body in bodies.items() if not name.startswith(_BUNDLE)}
    digest = hashlib.sha256()
    for name, body in sorted(bodies.items()):
        digest.update(f"{name}\0{len(body)}\0".encode() + body)
    version = digest.hexdigest()[:16]
    base = f"{prefix}/static/{version}/"
    import_map = json.dumps({"imports": {name: base + file for name, file in imports.items()}})
    main = _BUNDLE + _MAIN if has_bundle else _MAIN
    modules = _find_modules(bodies, imports, (_EARLY, main))
    preloads = "\n".join(f'<link rel="modulepreload" href="{base}{name}">' for name in modules)
    values = {"base": base, "prefix": prefix, "imports": import_map, "preloads": preloads, "main": main}
    text = folder.joinpath(_PAGE).read_text(encoding="utf-8")
    for name, value in {**facts, **values}.items():
        text = text.replace(f"{{{{{name}}}}}", value)
    script_hash = base64.b64encode(hashlib.sha256(import_map.encode()).digest()).decode()
    page = _static_file(_PAGE, text.encode(), content_type="text/html; charset=utf-8")
    by_name = {name: _static_file(name, body) for name, body in bodies.items()}
    return Files(page=page, script_hash=f"sha256-{script_hash}", version=version, by_name=by_name)


def _is_bundle_current(folder: Traversable, bodies: Mapping[str, bytes]) -> bool:
    """Say whether the bundle has exactly the modules of the folder; a checkout may have newer ones, or no bundle."""
    sources = folder.joinpath(_BUNDLE, _SOURCES)
    if not sources.is_file():
        return False
    hashes = {
        name: hashlib.sha256(body).hexdigest()
        for name, body in bodies.items()
        if name.endswith(".js") and not name.startswith(_BUNDLE)
    }
    return bool(json.loads(sources.read_bytes()) == hashes)


def _find_modules(bodies: Mapping[str, bytes], imports: Mapping[str, str], first: Sequence[str]) -> list[str]:
    """Return modules and all that they import, at any depth, but for what they import later.

    Each module has its imports behind it, so the first ones arrive first.
    """
    found, waiting = dict.fromkeys(first[:0]), list(reversed(first))
    while waiting:
        name = waiting.pop()
        found[name] = None
        for target in _IMPORT.findall(bodies[name].decode()):
            imported = imports.get(target) or posixpath.normpath(posixpath.join(posixpath.dirname(name), target))
            if imported in bodies and imported not in found:
                found[imported] = None
                waiting.append(imported)
    return list(found)


def _walk(folder: Traversable, path: str) -> list[tuple[str, bytes]]:
    """Return the paths and bodies of all files that browsers may load."""
    found: list[tuple[str, bytes]] = []
    for entry in sorted(folder.iterdir(), key=lambda each: each.name):
        if entry.is_dir():
            found += _walk(entry, f"{path}{entry.name}/")
        elif _suffix(entry.name) in _TYPES:
            found.append((path + entry.name, entry.read_bytes()))
    return found


def _suffix(name: str) -> str:
    return name[name.rfind(".") :]


def _static_file(name: str, body: bytes, *, content_type: str = "") -> StaticFile:
    return StaticFile(
        content_type=content_type or _TYPES[_suffix(name)], body=body, compressed=gzip.compress(body, 6, mtime=0)
    )
