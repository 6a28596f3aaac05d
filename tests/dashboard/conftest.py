"""A real Chromium for tests of the dashboard: each test fails on errors of the page, and on requests to other hosts."""

import os
from collections.abc import Iterator
from urllib.parse import urlsplit

import pytest

from tests.support.debian_packages import HOW_TO_INSTALL, find_program
from tests.support.missing_programs import skip_test

# Answers that a page expects, such as 401 before the sign-in, are in the console of Chromium, too. The second text is
# about tests that read single pixels.
_EXPECTED = ("the server responded with a status of", "willReadFrequently")
_OUTAGE = "net::ERR_"


# Playwright's loop runs while its browser does. Tests of other modules in this process run loops of their own.
@pytest.fixture(scope="module")
def browser() -> Iterator[object]:
    """Run a Chromium of the distribution for the tests of a module."""
    chromium = find_program("chromium")
    if chromium is None:
        skip_test(f"chromium is missing: {HOW_TO_INSTALL}")
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=60_000)  # The first long question starts the reader process.
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium)
        yield running
        running.close()


class Tab:
    """A page of a browser, and what went wrong in it.

    Args:
        browser: runs the page.
        address: of the server; requests to other hosts are faults.
        size: width and height in CSS pixels.
        scheme: light or dark.
    """

    def __init__(self, browser, address, *, size=(1440, 900), scheme="light"):
        self.address = address
        self.faults: list[str] = []
        self.expects_outage = False  # whether the test stops the server
        self.context = browser.new_context(
            viewport={"width": size[0], "height": size[1]}, color_scheme=scheme, reduced_motion="reduce"
        )
        self.context.set_default_timeout(60_000)
        self.page = self._watch(self.context.new_page())

    def _watch(self, page):
        page.on("pageerror", lambda error: self.faults.append(f"error: {error}"))
        page.on("console", self._note_console)
        page.on("request", self._note_request)
        return page

    def _note_console(self, message):
        expected = (*_EXPECTED, _OUTAGE) if self.expects_outage else _EXPECTED
        if message.type in {"error", "warning"} and not any(each in message.text for each in expected):
            self.faults.append(f"console: {message.text}")

    def _note_request(self, request):
        if urlsplit(request.url).netloc not in {urlsplit(self.address).netloc, ""}:
            self.faults.append(f"foreign request: {request.url}")

    def open(self, path="/"):
        """Open a view by its path; return the page."""
        self.page.goto(f"{self.address}/ui{path}")
        return self.page

    def sign_in(self, token):
        """Sign in on the open page."""
        self.page.get_by_label("Token").fill(token)
        self.page.get_by_role("button", name="Sign in").click()

    def new_page(self):
        """Return a further page in this browser's session."""
        return self._watch(self.context.new_page())

    def close(self):
        """Close all pages, and fail on what went wrong in them."""
        self.context.close()
        assert not self.faults, self.faults


@pytest.fixture
def open_tab(browser) -> Iterator[object]:
    """Return a function that opens tabs; they are checked and closed at the end of the test."""
    tabs: list[Tab] = []

    def create(address, **options):
        tabs.append(Tab(browser, address, **options))
        return tabs[-1]

    yield create
    for tab in tabs:
        tab.close()


@pytest.fixture(autouse=True)
def _quiet_driver(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let Playwright use the browser of the distribution, without a check of its own browsers."""
    monkeypatch.setitem(os.environ, "PLAYWRIGHT_SKIP_VALIDATE_HOST_REQUIREMENTS", "1")
