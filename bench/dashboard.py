"""The dashboard with a large fleet, in a real browser: ``python -m bench.dashboard --hosts 100000``.

Starts a server on a generated fleet, with 100 decisions a second. Prints, for the page of the fleet in the Chromium of
the distribution: the time of the first map, frame times at rest, while zooming and while panning, bytes and requests
over the wire, and memory. Then prints the times of decisions without and with 20 dashboards, and the processor time of
the server. Without the folder ``static/bundle``, it measures the plain modules.
"""

import gzip
import http.client
import multiprocessing
import os
import selectors
import socket
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from multiprocessing.synchronize import Event

from playwright.sync_api import Browser, CDPSession, Page, sync_playwright

from bench.reads import decide_at_rate, line, serve_fleet
from tests.support.debian_packages import find_program
from tests.support.servers.clusters import resource_use
from tests.support.servers.fleet_files import FleetColumns
from tests.support.servers.servers import RunningServer

_DASHBOARDS, _PAGES = 20, 5
_HEADERS = {"x-auth-token": "admin", "accept-encoding": "gzip"}
_SIZE = {"width": 1440, "height": 900}
_FRAMES = """
(seconds) => new Promise((resolve) => {
  const times = []; let last = 0; const end = performance.now() + 1000 * seconds;
  const step = (now) => {
    if (last) times.push(now - last);
    last = now;
    now < end ? requestAnimationFrame(step) : resolve(times);
  };
  requestAnimationFrame(step);
})
"""
_PAINTED = "() => window.fleetMap?.layout && performance.getEntriesByName('fleet-painted')[0]?.startTime"


def _frames(page: Page, name: str, *, act: object = None, seconds: float = 4.0) -> None:
    """Print the intervals between frames, while an act repeats."""
    page.evaluate(f"window.benchFrames = ({_FRAMES})({seconds})")
    end_s = time.monotonic() + seconds
    while act is not None and time.monotonic() < end_s:
        act()  # type: ignore[operator]
    intervals = sorted(page.evaluate("window.benchFrames"))
    p50, p95 = intervals[len(intervals) // 2], intervals[int(len(intervals) * 0.95)]
    print(f"  frames {name:22} p50 {p50:6.1f} ms   p95 {p95:6.1f} ms   {len(intervals):5,} frames")


def _open(browser: Browser, server: RunningServer) -> tuple[Page, float, float]:
    """Open a page without a cache; return it, and the milliseconds until its data and until its map."""
    page = browser.new_context(viewport=_SIZE).new_page()
    page.goto(f"{server.address}/ui/?test")
    painted_ms = _wait_for(page, _PAINTED)
    return page, page.evaluate("performance.getEntriesByName('fleet-arrived')[0].startTime"), painted_ms


def _time_first_maps(browser: Browser, server: RunningServer) -> None:
    """Print the time of the first map, of several pages; the first page of a browser is slower than later ones."""
    painted: list[float] = []
    drawn: list[float] = []
    for _ in range(_PAGES):
        page, data_ms, painted_ms = _open(browser, server)
        painted.append(painted_ms)
        drawn.append(painted_ms - data_ms)
        page.context.close()
    times = f"{sorted(painted)[_PAGES // 2]:.0f} ms after the navigation ({min(painted):.0f}..{max(painted):.0f})"
    print(f"  first map, median of {_PAGES}: {times}, {sorted(drawn)[_PAGES // 2]:.0f} ms after its data")


def _look(browser: Browser, server: RunningServer) -> None:
    """Measure one page."""
    context = browser.new_context(viewport=_SIZE)
    page = context.new_page()
    wire = _count_bytes(context.new_cdp_session(page))
    page.goto(f"{server.address}/ui/?test")
    _wait_for(page, _PAINTED)
    requests = page.evaluate("performance.getEntriesByType('resource').length") + 1
    print(f"  bytes until the first map: {wire['bytes']:,} in {requests} requests")
    box = page.get_by_role("application").bounding_box()
    assert box is not None, "the map is visible"
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x, y)
    _frames(page, "at rest, with changes")
    direction = [1]

    def zoom() -> None:
        page.mouse.wheel(0, -240 * direction[0])
        if page.evaluate("window.fleetMap.view.zoom") in (1, 60):
            direction[0] = -direction[0]

    _frames(page, "zooming", act=zoom)
    page.evaluate("window.fleetMap.view = {zoom: 8, x: 4000, y: 2000}")
    page.mouse.down()
    turn = [0]

    def pan() -> None:
        turn[0] += 1
        page.mouse.move(x + 200 * (turn[0] % 3 - 1), y + 120 * (turn[0] % 2))

    _frames(page, "panning", act=pan)
    page.mouse.up()
    start = wire["bytes"]
    time.sleep(10.0)
    page.evaluate("0")  # Playwright counts bytes while it waits for an answer.
    print(f"  bytes a second of the stream: {(wire['bytes'] - start) / 10:,.0f}")
    memory = page.evaluate("performance.memory.usedJSHeapSize") / 2**20
    print(f"  memory of scripts: {memory:.0f} MiB")
    context.close()


def _wait_for(page: Page, script: str) -> float:
    """Return the result of a script as soon as it has one; the policy of the page forbids Playwright's own way."""
    end_s = time.monotonic() + 60
    while not (result := page.evaluate(script)):
        assert time.monotonic() < end_s, script
        time.sleep(0.05)
    return float(result)


def _count_bytes(session: CDPSession) -> dict[str, int]:
    session.send("Network.enable")
    wire = {"bytes": 0}

    def add(event: dict[str, float]) -> None:
        wire["bytes"] += int(event["encodedDataLength"])

    session.on("Network.dataReceived", add)
    return wire


def _watch(port: int, is_ready: Event, is_done: Event) -> None:
    """Do what pages do, without drawing: read the columns, and follow the stream."""
    os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))  # Browsers run on other machines.
    streams = selectors.DefaultSelector()
    for _ in range(_DASHBOARDS):
        columns = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        columns.request("GET", "/v1/fleet/columns", headers=_HEADERS)
        head = columns.getresponse().read()
        columns.close()
        position = FleetColumns(gzip.decompress(head)).head["position"]
        stream = socket.create_connection(("127.0.0.1", port), timeout=60)
        names = "".join(f"{name}: {value}\r\n" for name, value in _HEADERS.items())
        path = f"/v1/events?fleet=true&after={position}"
        stream.sendall(f"GET {path} HTTP/1.1\r\nhost: 127.0.0.1\r\n{names}\r\n".encode())
        assert stream.recv(12) == b"HTTP/1.1 200"
        streams.register(stream, selectors.EVENT_READ)
    is_ready.set()
    while not is_done.is_set():
        for ready, _ in streams.select(0.1):
            assert ready.fileobj.recv(2**18), "the server ended a stream"  # type: ignore[union-attr]


@contextmanager
def _dashboards(port: int) -> Iterator[None]:
    context = multiprocessing.get_context("spawn")
    is_ready, is_done = context.Event(), context.Event()
    process = context.Process(target=_watch, args=(port, is_ready, is_done))
    process.start()
    assert is_ready.wait(120), "the streams are open"
    try:
        yield
    finally:
        is_done.set()
        process.join(30)
    assert process.exitcode == 0, "a dashboard failed"


def _measured(server: RunningServer, name: str, seconds: float) -> float:
    """Print the times of decisions, and the share of a processor of the server; return the 99th percentile."""
    before, begun_s = resource_use(server.process.pid)[0], time.perf_counter()
    times_s: Sequence[float] = decide_at_rate(server.port, seconds)
    used_s = resource_use(server.process.pid)[0] - before
    print(line(name, times_s), f"  server {100 * used_s / (time.perf_counter() - begun_s):.0f} % of a processor")
    return sorted(times_s)[int(len(times_s) * 0.99)]


def main() -> None:
    """Print the figures."""
    with serve_fleet(__doc__, hosts=100_000) as (server, seconds):
        decide_at_rate(server.port, 2.0)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=find_program("chromium"), args=["--enable-precise-memory-info"]
            )
            print("a page without decisions:")
            _time_first_maps(browser, server)
            _look(browser, server)
            browser.close()
        alone_s = _measured(server, "decisions alone", seconds)
        with _dashboards(server.port):
            beside_s = _measured(server, f"decisions beside {_DASHBOARDS} dashboards", seconds)
        print(f"ratio of the 99th percentiles: {beside_s / alone_s:.2f}")


if __name__ == "__main__":
    main()
