"""Write the pictures of the dashboard into docs/pictures: ``python -m tests.dashboard.screenshots``.

Fills a fleet, serves it with traffic, and photographs every view in the Chromium of the distribution.
"""

import argparse
import contextlib
import json
import random
import tempfile
import threading
import time
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from playwright.sync_api import Page, sync_playwright

from roost.app import open_roost
from roost.errors import RoostError
from roost.model.evidence.fleet_history import (
    MINUTE_S,
    ClassAmounts,
    DecisionCounts,
    HistoryRow,
    encode_amounts,
    encode_counts,
)
from roost.simulator.demo_server import DemoServer
from roost.simulator.traces.filling_requests import fill
from roost.simulator.traces.generated_fleet import generate_fleet
from roost.store.upkeep.stored_history import SqlHistory
from tests.dashboard.small_png import shrink
from tests.support.debian_packages import find_program
from tests.support.fleets.products import ROOT

_PICTURES = ROOT / "docs" / "pictures"
_SIZES = {"desk": (1280, 800), "phone": (390, 844)}
_SETTLE_MS = 2500
_LIMIT_MS = 60_000
_IS_WAITING = "document.querySelector('.progress') || /(Loading|Counting|Comparing) …/.test(document.body.innerText)"
_DAY = 1440  # minutes
_SETTINGS = "[scheduler]\nsearch_budget_s = 60\n"  # The machine may be busy.
_VIEWS = {
    "fleet": "/?colour=VCPU",
    "room": "/?colour=fit&flavor=vcpus%3D2%2Cmemory_mb%3D4096%2Croot_gb%3D10",
    "host": "/hosts/host-00010",
    "decisions": "/decisions",
    "refused": "/decisions/{refused}",
    "granted": "/decisions/{granted}",
    "try": "/try",
    "live": "/live",
    "capacity": "/capacity",
    "work": "/instances",
    "policies": "/policies",
    "settings": "/settings",
}


def _photograph(page: Page, address: str, path: str, file: Path) -> None:
    page.goto(f"{address}/ui{path}")
    if path.startswith("/?"):
        page.locator(".figure").first.wait_for(timeout=_LIMIT_MS)
    page.wait_for_timeout(_SETTLE_MS if "live" not in path else 6 * _SETTLE_MS)
    if path == "/policies":
        page.get_by_role("button", name="Compare").click()
    page.wait_for_function(f"() => !({_IS_WAITING})", timeout=_LIMIT_MS)
    if path == "/policies":
        page.locator("canvas").first.scroll_into_view_if_needed(timeout=_LIMIT_MS)
        page.wait_for_timeout(_SETTLE_MS)
    problem = page.locator(".problem")
    if problem.count():
        raise SystemExit(f"{path} shows a problem instead of the view: {problem.first.inner_text()}")
    file.write_bytes(shrink(page.screenshot()))
    page.close()  # Its stream is one of six connections.


def _write_history(address: str, data: Path) -> None:
    """Write a day in which the use rises to the present one."""
    request = Request(f"{address}/v1/status", headers={"x-auth-token": "admin"})  # our own server
    with urlopen(request) as response:
        resources = json.load(response)["resources"]
    history, now, rng = SqlHistory(str(data / "roost.db")), int(time.time() // MINUTE_S), random.Random("history")
    for age in range(_DAY, 5, -5):
        cells = []
        for name, amounts in sorted(resources.items()):
            used = int(amounts["used"] * (1 - 0.2 * age / _DAY) * rng.uniform(0.995, 1.005))
            cells.append(ClassAmounts(name, "zone-1", amounts["capacity"], used, (amounts["capacity"] - used) // 3, 0))
        history.insert(HistoryRow(now - age, "", encode_amounts(cells), b""))
        counts = DecisionCounts(rng.randrange(40, 80), 0, {"search/amount": rng.randrange(5, 20)})
        history.insert(HistoryRow(now - age, "pictures", b"", encode_counts(counts)))


def _send(server: DemoServer, **traffic: Any) -> None:
    with contextlib.suppress(RoostError):  # The server ends with the last picture.
        server.send_traffic(**traffic)


def main() -> None:
    """Write the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=1200)
    parser.add_argument("--folder", type=Path, default=_PICTURES)
    parser.add_argument("--all", action="store_true", help="dark pages, and pages of a phone, too")
    arguments = parser.parse_args()
    folder = arguments.folder.resolve()
    # The settings show the path of the database: a relative one is the same on every machine.
    with tempfile.TemporaryDirectory() as place, contextlib.chdir(place):
        data, settings = Path("fleet"), Path("filling.toml")
        settings.write_text(_SETTINGS, encoding="utf-8")
        with open_roost(settings, data) as roost:
            roost.install(generate_fleet(arguments.hosts, rng=random.Random("fleet"), groups=[]))
            for _ in fill(roost, rng=random.Random("filling")):
                pass
            decisions = roost.decisions(2000)
            ids = {outcome: next(each.uuid for each in decisions if each.outcome == outcome) for outcome in _OUTCOMES}
        with DemoServer(data, listen="127.0.0.1:0") as server, sync_playwright() as playwright:
            _write_history(server.address, data)
            traffic = {"rng": random.Random("traffic"), "requests": 3000}
            threading.Thread(target=_send, args=(server,), kwargs=traffic, daemon=True).start()
            browser = playwright.chromium.launch(executable_path=find_program("chromium"))
            for size in _SIZES if arguments.all else ("desk",):
                for scheme in ("light", "dark") if arguments.all else ("light",):
                    width, height = _SIZES[size]
                    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
                    more = f"-{size}-{scheme}" if arguments.all else ""
                    for name, path in _VIEWS.items():
                        file = folder / f"dashboard-{name}{more}.png"
                        _photograph(context.new_page(), server.address, path.format(**ids), file)
                        print(file, flush=True)
                    context.close()
            browser.close()


_OUTCOMES = ("granted", "refused")

if __name__ == "__main__":
    main()
