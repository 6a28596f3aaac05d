"""Write the pictures of the dashboard into docs/pictures: ``python -m tests.dashboard.screenshots``.

Fills a fleet, serves it with traffic, and photographs every view in the Chromium of the distribution.
"""

import argparse
import random
import tempfile
import threading
from pathlib import Path

from playwright.sync_api import Page, sync_playwright

from roost.app import open_roost
from roost.simulator.demo_server import DemoServer
from roost.simulator.traces.filling_requests import fill
from roost.simulator.traces.generated_fleet import generate_fleet
from tests.support.debian_packages import find_program
from tests.support.fleets.products import ROOT

_PICTURES = ROOT / "docs" / "pictures"
_SIZES = {"desk": (1440, 900), "phone": (390, 844)}
_SETTLE_MS = 2500
_VIEWS = {
    "fleet": "/",
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
    page.wait_for_timeout(_SETTLE_MS if "live" not in path else 6 * _SETTLE_MS)
    page.screenshot(path=file)


def main() -> None:
    """Write the pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--hosts", type=int, default=1500)
    parser.add_argument("--folder", type=Path, default=_PICTURES)
    parser.add_argument("--all", action="store_true", help="dark pages, and pages of a phone, too")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as data:
        with open_roost(None, Path(data)) as roost:
            roost.install(generate_fleet(arguments.hosts, rng=random.Random("fleet"), groups=[]))
            for _ in fill(roost, rng=random.Random("filling")):
                pass
            decisions = roost.decisions(2000)
            ids = {outcome: next(each.uuid for each in decisions if each.outcome == outcome) for outcome in _OUTCOMES}
        with DemoServer(Path(data), listen="127.0.0.1:0") as server, sync_playwright() as playwright:
            traffic = {"rng": random.Random("traffic"), "requests": 3000}
            threading.Thread(target=server.send_traffic, kwargs=traffic, daemon=True).start()
            browser = playwright.chromium.launch(executable_path=find_program("chromium"))
            for size in _SIZES if arguments.all else ("desk",):
                for scheme in ("light", "dark") if arguments.all else ("light",):
                    width, height = _SIZES[size]
                    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
                    more = f"-{size}-{scheme}" if arguments.all else ""
                    for name, path in _VIEWS.items():
                        file = arguments.folder / f"dashboard-{name}{more}.png"
                        _photograph(context.new_page(), server.address, path.format(**ids), file)
                        print(file, flush=True)
                    context.close()
            browser.close()


_OUTCOMES = ("granted", "refused")

if __name__ == "__main__":
    main()
