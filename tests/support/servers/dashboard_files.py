"""The files of the dashboard in tests: copies with and without a bundle, and requests to their application."""

import hashlib
import json
import shutil
from contextlib import suppress
from pathlib import Path

from roost.dashboard.dashboard_site import DashboardSite
from tests.support.fleets.products import ROOT

STATIC = ROOT / "src/roost/dashboard/static"


def copy_static(folder: Path) -> Path:
    """Copy the files of the page, without a bundle; return the folder of the copy."""
    return Path(shutil.copytree(STATIC, folder / "static", ignore=shutil.ignore_patterns("bundle")))


def write_bundle(static: Path, files: dict[str, str]) -> None:
    """Write a bundle of the present modules, with these files."""
    modules = {str(path.relative_to(static)): path.read_bytes() for path in static.rglob("*.js")}
    hashes = {name: hashlib.sha256(body).hexdigest() for name, body in modules.items()}
    bundle = static / "bundle"
    bundle.mkdir()
    for name, text in {**files, "sources.json": json.dumps(hashes)}.items():
        (bundle / name).write_text(text, encoding="utf-8")


def ask(site: DashboardSite, path: str, *, method: str = "GET", scheme: str = "http", **headers: str):
    """Send one request; return status, headers and body."""
    encoded = [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": method, "path": path, "scheme": scheme, "headers": encoded}
    sent = []

    async def send(message):
        sent.append(message)

    # The site never waits. So it needs no loop, and works within that of Playwright.
    with suppress(StopIteration):
        site(scope, None, send).send(None)
    start, end = sent
    return start["status"], {name.decode(): value.decode() for name, value in start["headers"]}, end["body"]
