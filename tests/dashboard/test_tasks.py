"""Tasks of operators across several views: places, lists and their addresses, outages, and roles."""

import re
import time
from contextlib import contextmanager

import pytest
from playwright.sync_api import expect

from roost.api.access.authentication import as_toml, new_token
from roost.app import open_roost
from tests.dashboard.live_pages import wait_until_live
from tests.support.fleets.products import fleet
from tests.support.servers.servers import serve
from tests.support.wait import wait_until

PLACES = ("Fleet", "Decisions", "Try", "Live", "Capacity", "Work", "Policies", "Settings")


@contextmanager
def running_server(folder, **options):
    """Run a server on a fleet of three hosts, host-0 to host-2."""
    if not (folder / "roost.db").exists():
        with open_roost(None, folder) as product:
            product.install(fleet(3, vcpus=4))
    with serve(noun="up", folder=folder, **options) as running:
        yield running


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with running_server(tmp_path_factory.mktemp("tasks")) as running:
        yield running


def decide(server, **request):
    """Make a decision; return its body."""
    status, _, body = server.ask("POST", "/v1/decisions", {"flavor": {"name": "small", "vcpus": 1}, **request})
    assert status == 201, body
    return body


@pytest.mark.parametrize("size", [(1440, 900), (390, 844)])
def test_every_place_is_reached_from_every_other(server, open_tab, size):
    """Each view is left, too: the tab fails on errors of what a view leaves behind."""
    page = open_tab(server.address, size=size).open("/")
    expect(page.get_by_role("application")).to_be_visible()
    for name in (*PLACES, *reversed(PLACES)):
        page.get_by_role("navigation", name="Views").get_by_role("link", name=name).click()
        expect(page.get_by_role("heading", level=1)).to_contain_text(name)
        expect(page.get_by_text("Loading")).to_have_count(0)


def test_hosts_with_the_least_free_memory_come_first(server, open_tab):
    decide(server, flavor={"name": "wide", "memory_mb": 512}, force_hosts=["host-1"])
    page = open_tab(server.address).open("/")
    page.get_by_role("link", name="List of hosts").click()
    rows = page.get_by_role("table", name="Hosts").get_by_role("row")
    expect(rows).to_have_count(1 + 3)
    expect(rows.nth(1)).to_contain_text("host-0")
    page.get_by_label("Order").select_option(label="Least free Memory first")
    expect(rows.nth(1)).to_contain_text("host-1")
    page.get_by_label("Find hosts by name, zone or rack").fill("host-2")
    expect(page.get_by_text("1 of 3 hosts")).to_be_visible()
    page.reload()  # the address has the order and the text
    expect(rows.nth(1)).to_contain_text("host-2")
    page.get_by_role("link", name="host-2").click()
    expect(page.get_by_role("heading", name="host-2")).to_be_visible()


def test_frame_on_the_map_selects_only_hosts_that_were_found(server, open_tab):
    page = open_tab(server.address).open("/?test")
    wait_until(lambda: page.evaluate("window.fleetMap?.isPainted"))
    expect(page.get_by_role("heading", name="Memory", exact=True)).to_be_visible()  # the map moves down for it
    page.get_by_label("Find a host by name").fill("host-1")
    page.get_by_role("button", name="Select hosts").click()
    expect(page.get_by_role("button", name="End selecting")).to_be_visible()
    box = page.get_by_role("application").bounding_box()
    page.mouse.move(box["x"] + 2, box["y"] + 2)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 200, steps=3)
    page.mouse.up()
    expect(page.get_by_text("1 host selected")).to_be_visible()


def test_decisions_of_a_period_are_found(server, open_tab):
    decide(server, flavor={"name": "never", "vcpus": 100_000})
    page = open_tab(server.address).open("/decisions?outcome=refused")
    rows = page.get_by_role("table", name="Decisions").get_by_role("row")
    expect(rows.nth(1)).to_contain_text("lack 100,000 VCPU")
    with page.expect_request(re.compile(r"/v1/decisions\?.*since=\d+")):
        page.get_by_role("button", name="Hour").click()
    expect(rows.nth(1)).to_contain_text("lack 100,000 VCPU")


def test_filter_of_the_live_view_is_still_there_after_a_decision(server, open_tab):
    page = open_tab(server.address).open("/live")
    wait_until_live(page)
    page.get_by_role("button", name="Refused, failed").click()
    page.get_by_label("Filter events by text").fill("giant")
    decide(server, flavor={"name": "giant", "vcpus": 100_000})
    decide(server, flavor={"name": "other", "vcpus": 100_000})
    events = page.get_by_role("list", name="Events, newest first")
    expect(events.get_by_role("link")).to_have_text(re.compile("^giant ✕ 0 of 3 hosts"))
    events.get_by_role("link").click()
    expect(page.get_by_role("heading", name="giant ✕ Refused")).to_be_visible()
    page.go_back()
    expect(page.get_by_label("Filter events by text")).to_have_value("giant")
    expect(events.get_by_role("link")).to_have_count(1)


def test_slow_answer_arrives_although_the_view_asks_often(server, open_tab):
    page = open_tab(server.address).open("/decisions")
    page.route(re.compile("/v1/operations"), lambda route: (time.sleep(4), route.continue_()))
    page.get_by_role("link", name="Work").click()
    page.get_by_role("link", name="Operations").click()  # asks every three seconds
    expect(page.get_by_text("Nothing is in progress.")).to_be_visible(timeout=60_000)
    page.unroute_all(behavior="ignoreErrors")


IS_LOADED = "performance.getEntriesByName('views-loaded').length"


def test_view_loads_by_itself_when_the_server_is_back(tmp_path, open_tab):
    with running_server(tmp_path) as first:
        uuid = decide(first)["uuid"]
        tab = open_tab(first.address)
        page = tab.open("/decisions")
        link = page.get_by_role("link", name=re.compile(uuid[:8]))
        expect(link).to_be_visible()
        wait_until_live(page)
        wait_until(lambda: page.evaluate(IS_LOADED))  # The other views follow the first one.
        tab.expects_outage = True
        first.process.kill()
        first.process.wait()
        link.click()
        expect(page.get_by_role("alert")).to_contain_text("The server does not answer.")
    with running_server(tmp_path, listen=f"127.0.0.1:{first.port}"):
        expect(page.get_by_role("region", name="Result")).to_be_visible(timeout=40_000)
        expect(page.get_by_role("alert")).to_have_count(0)


def test_unknown_objects_have_a_way_back_and_no_useless_button(server, open_tab):
    tab = open_tab(server.address)
    for path, text, way in (
        ("/hosts/nowhere", "no such host: nowhere", "Fleet"),
        ("/decisions/abcdef", "no such decision: abcdef", "Decisions"),
        ("/instances/abcdef", "no such instance: abcdef", "Instances"),
        ("/operations/abcdef", "no such operation: abcdef", "Operations"),
    ):
        page = tab.open(path)
        expect(page.get_by_role("alert")).to_have_text(text)
        expect(page.get_by_role("main").get_by_role("link", name=way)).to_be_visible()
        expect(page.get_by_role("heading", level=1)).to_have_count(1)


@pytest.fixture
def guarded(tmp_path):
    """Yield a server with tokens, and the text of a reader's token."""
    text, entry = new_token("rita", roles=("reader",))
    file = tmp_path / "tokens.toml"
    file.write_text(as_toml(entry))
    file.chmod(0o600)
    with running_server(tmp_path, settings=f'auth_strategy = "tokens"\ntokens_file = "{file}"') as running:
        yield running, text


def test_page_of_a_reader_does_not_ask_for_the_stream(guarded, open_tab):
    server, text = guarded
    tab = open_tab(server.address)
    requests = []
    tab.context.on("request", lambda request: requests.append(request.url))
    page = tab.open("/live")
    page.get_by_label("Token").fill("wrong")
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_role("alert")).to_have_text("The server does not know this token.")
    page.get_by_label("Token").fill(text)
    page.get_by_role("button", name="Sign in").click()
    expect(page.get_by_text("Your roles do not allow you to see events.")).to_be_visible()
    expect(page.get_by_text("Not live: your roles do not allow it")).to_be_visible()
    assert not any("/v1/events" in each for each in requests)
