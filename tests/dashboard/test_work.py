"""Hosts, instances and drains in a real browser, with agents that do the work."""

import re
import time

import pytest
from playwright.sync_api import expect

from roost.app import open_roost
from roost.simulator.stable_uuids import uuid_of
from tests.dashboard.clouds import build, get, running_cloud
from tests.support.accessibility import find_violations
from tests.support.fleets.products import fleet
from tests.support.fleets.worlds import small_request
from tests.support.servers.servers import serve
from tests.support.servers.token_files import write_tokens
from tests.support.wait import wait_until

PATIENCE_MS = 45_000


@pytest.fixture(scope="module")
def cloud(tmp_path_factory):
    """Yield a server with four hosts. Only the test that drains node-1 puts instances there."""
    with running_cloud(tmp_path_factory.mktemp("cloud"), hosts=4) as server:
        change_service(server, "node-1", disabled=True)
        yield server


def change_service(server, host, **changes):
    """Disable or enable a host."""
    assert server.ask("PATCH", f"/v1/services/{host}", changes)[0] == 200


def delete_instances(server):
    """Delete all instances, also those whose operation under way has to end first."""

    def none_is_left():
        left = get(server, "/instances")["instances"]
        for instance in left:
            server.ask("DELETE", f"/v1/instances/{instance['uuid']}")
        return not left

    wait_until(none_is_left)


@pytest.fixture
def tab(cloud, open_tab):
    """A tab of an administrator."""
    return open_tab(cloud.address)


def press_in_dialog(page, name):
    """Press a button of the open dialog, and wait until the dialog has closed."""
    dialog = page.get_by_role("dialog")
    dialog.get_by_role("button", name=name, exact=True).click()
    expect(dialog).to_have_count(0)


def test_host_is_disabled_with_a_reason_and_enabled(cloud, tab):
    page = tab.open("/hosts/node-4")
    expect(page.get_by_role("heading", name="node-4")).to_be_visible()
    page.get_by_role("button", name="Disable …").click()
    page.get_by_role("dialog").get_by_label("Reason").fill("a fan is broken")
    press_in_dialog(page, "Disable")
    expect(page.get_by_text("Disabled: a fan is broken")).to_be_visible()
    host = get(cloud, "/hosts/node-4")
    assert (host["disabled"], host["disabled_reason"]) == (True, "a fan is broken")
    events = page.get_by_role("list", name="Events of this host, newest first")
    expect(events.get_by_text("host disable")).to_be_visible()
    page.get_by_role("button", name="Enable …").click()
    press_in_dialog(page, "Enable")
    expect(page.get_by_role("button", name="Disable …")).to_be_visible()
    assert get(cloud, "/hosts/node-4")["disabled"] is False


def test_tree_and_cells_of_a_host_show_who_holds_what(cloud, tab):
    build(cloud, "keeper", host="node-3")
    page = tab.open("/hosts/node-3")
    providers = page.get_by_role("list", name="Providers", exact=True)
    expect(providers.get_by_text("node-3_numa0")).to_be_visible()
    expect(providers.get_by_text("node-3_numa1")).to_be_visible()
    page.get_by_label("Show what an instance holds").select_option(label="keeper")
    expect(page.get_by_text(re.compile(r"holds 1 GiB Disk on node-3; .*1 VCPU.* on node-3_numa"))).to_be_visible()
    cell = page.get_by_role("region", name="NUMA cell 0")
    expect(cell.get_by_role("img", name="4 shared processors")).to_be_visible()
    expect(page.get_by_role("region", name="NUMA cell 1").get_by_text("15b3:1018")).to_be_visible()


def test_instance_is_created_stopped_and_deleted(tab):
    page = tab.open("/instances")
    page.get_by_role("link", name="Create instances").click()
    page.get_by_role("button", name="Place it …").click()
    page.get_by_role("dialog").get_by_label("Name").fill("shop")
    page.get_by_role("dialog").get_by_role("button", name="Place it").click()
    expect(page.get_by_role("heading", name="Build shop ✓ done")).to_be_visible(timeout=PATIENCE_MS)
    page.get_by_role("region", name="Instances of the operation").get_by_role("link", name="shop").click()
    expect(page.get_by_role("heading", name="shop active")).to_be_visible(timeout=PATIENCE_MS)
    page.get_by_role("button", name="Stop …").click()
    press_in_dialog(page, "Stop")
    expect(page.get_by_role("heading", name="shop shutoff")).to_be_visible(timeout=PATIENCE_MS)
    expect(page.get_by_role("button", name="Start …")).to_be_visible()
    expect(page.get_by_role("button", name="Reboot …")).to_have_count(0)
    page.get_by_role("button", name="Delete …").click()
    press_in_dialog(page, "Delete")
    expect(page.get_by_role("heading", name="shop deleted")).to_be_visible(timeout=PATIENCE_MS)
    expect(page.get_by_role("list", name="Story, newest first").get_by_text("delete done")).to_be_visible()
    tab.open("/instances?name=shop")
    expect(page.get_by_text("No instance matches.")).to_be_visible()


def test_drain_is_planned_started_paused_and_seen_to_end(cloud, tab):
    change_service(cloud, "node-1", disabled=False)
    uuids = build(cloud, "guest", count=3, host="node-1")
    page = tab.open("/drains?hosts=node-1")
    sentence = page.get_by_text(re.compile("3 instances would leave node-1, and none would stay"))
    expect(sentence).to_be_visible(timeout=PATIENCE_MS)
    plan = page.get_by_role("region", name="Moves")
    expect(plan.get_by_role("row")).to_have_count(1 + 3)
    page.get_by_label("Instances that move at once").select_option(label="1 at once")
    page.get_by_role("button", name="Start the drain …").click()
    page.get_by_role("dialog").get_by_label("Reason").fill("new memory")
    press_in_dialog(page, "Start the drain")
    bar = page.get_by_role("progressbar", name="Drain of node-1")
    expect(bar).to_be_visible()
    page.get_by_role("button", name="Pause").click()
    expect(page.get_by_text("paused", exact=True)).to_be_visible()
    expect(page.get_by_text(re.compile("of 3 instances gone, 2 to go"))).to_be_visible(timeout=PATIENCE_MS)
    page.get_by_role("button", name="Resume").click()
    expect(page.get_by_text("node-1 is empty.")).to_be_visible(timeout=PATIENCE_MS)
    expect(bar).to_have_attribute("aria-valuetext", "3 of 3 instances gone")
    assert all(get(cloud, f"/instances/{uuid}")["host"] != "node-1" for uuid in uuids)
    assert get(cloud, "/hosts/node-1")["disabled_reason"] == "new memory"
    tab.open("/migrations?status=any")
    expect(page.get_by_role("region", name="Migrations").get_by_role("link", name="guest-2").first).to_be_visible()


def test_plan_says_who_stays_and_why_and_a_drain_is_stopped(cloud, tab):
    group = cloud.ask("POST", "/v1/groups", {"name": "apart", "policy": "anti-affinity"})[2]["uuid"]
    build(cloud, "lone", count=3, group=group, force_hosts=["node-2", "node-3", "node-4"])
    build(cloud, "many", count=3, host="node-2")
    page = tab.open("/drains?hosts=node-2,nowhere")
    stays = page.get_by_role("region", name="Instances that stay")
    expect(stays.get_by_text("hold a member of the server group")).to_be_visible(timeout=PATIENCE_MS)
    expect(page.get_by_text("no such host: nowhere")).to_be_visible()
    page.get_by_label("Instances that move at once").select_option(label="1 at once")
    page.get_by_role("button", name="Start the drain …").click()
    press_in_dialog(page, "Start the drain")
    page.get_by_role("button", name="Stop …").click()
    press_in_dialog(page, "Stop the drain")
    expect(page.get_by_text(re.compile("^it was cancelled"))).to_be_visible(timeout=PATIENCE_MS)
    change_service(cloud, "node-2", disabled=False)


def test_drains_of_several_hosts_are_paused_and_stopped_together(cloud, tab):
    for host in ("node-3", "node-4"):
        build(cloud, f"pair-{host}", count=3, host=host)
    page = tab.open("/drains?hosts=node-3,node-4&at_once=1")
    page.get_by_role("button", name="Start the drain …").click()
    press_in_dialog(page, "Start the drain")
    page.get_by_role("button", name="Pause all").click()
    expect(page.get_by_text("paused", exact=True)).to_have_count(2)
    page.get_by_role("button", name="Resume all").click()
    expect(page.get_by_text("paused", exact=True)).to_have_count(0)
    page.get_by_role("button", name="Stop all …").click()
    press_in_dialog(page, "Stop the drains")
    expect(page.get_by_text("✕ stopped")).to_have_count(2, timeout=PATIENCE_MS)
    for host in ("node-3", "node-4"):
        change_service(cloud, host, disabled=False)


def test_plan_with_moves_of_others_is_applied_in_a_window(cloud, tab):
    delete_instances(cloud)  # of the other tests: the plan depends on them
    build(cloud, "waits", count=2, host="node-4")
    count = len(cloud.ask("POST", "/v1/plans/drain", {"hosts": ["node-4"]})[2]["moves"])
    assert count >= 2
    page = tab.open("/drains?hosts=node-4")
    page.get_by_label("Let other instances make room").check()
    sentence = page.get_by_text(f"1 of 1 host would be empty after {count} moves.")
    expect(sentence).to_be_visible(timeout=PATIENCE_MS)
    moves = page.get_by_role("region", name="Moves")
    expect(moves.get_by_text("leaves node-4")).to_have_count(count)
    page.get_by_role("button", name="Apply the plan …").click()
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Windows in UTC").fill(closed_window())
    dialog.get_by_label("Disable the hosts first").uncheck()
    press_in_dialog(page, "Apply the plan")
    expect(page.get_by_text("waits for its window")).to_be_visible(timeout=PATIENCE_MS)
    expect(page.get_by_text(f"{closed_window()} (UTC)")).to_be_visible()
    expect(page.get_by_text(re.compile("No move begins before the next window, 20"))).to_be_visible()
    expect(page.get_by_role("progressbar", name="Moves of the plan")).to_have_attribute(
        "aria-valuetext", f"0 of {count} moves done, {count} to come"
    )
    expect(page.get_by_role("region", name="Moves of the plan").get_by_text("waiting")).to_have_count(count)
    operation = page.url.rpartition("/")[2]
    assert get(cloud, f"/operations/{operation}")["plan"]["windows"] == [closed_window()]
    assert cloud.ask("DELETE", f"/v1/operations/{operation}")[0] in {200, 202, 204}
    expect(page.get_by_text("✕ stopped")).to_be_visible(timeout=PATIENCE_MS)


def closed_window():
    """Return a window of one minute that begins in about twelve hours."""
    hour = (time.gmtime().tm_hour + 12) % 24
    return f"{hour:02}:00-{hour:02}:01"


VIEWS = (
    "/hosts/node-3",
    "/instances",
    "/instances/{instance}",
    "/operations?show=recent",
    "/operations/{operation}",
    "/migrations?status=any",
    "/drains",
    "/drains?hosts=node-3",
    "/drains?hosts=node-3&others=1",
)


def test_views_have_no_violations_of_accessibility_rules(cloud, open_tab):
    (uuid,) = build(cloud, "accessible", host="node-3")
    ids = {"instance": uuid, "operation": get(cloud, f"/instances/{uuid}")["operations"][0]["uuid"]}
    found = {}
    for scheme, size in (("light", (1440, 900)), ("dark", (390, 844))):
        tab = open_tab(cloud.address, size=size, scheme=scheme)
        for view in VIEWS:
            page = tab.open(view.format(**ids))
            expect(page.get_by_role("main")).to_be_visible()
            expect(page.get_by_text("Loading")).to_have_count(0, timeout=PATIENCE_MS)
            found |= {(view, scheme, rule): text for rule, text in find_violations(page).items()}
            assert page.evaluate("document.documentElement.scrollWidth") <= size[0], view
    assert found == {}


@pytest.fixture
def guarded(tmp_path):
    """Yield a server with a claim, tokens of a reader and an observer, and the instance."""
    with open_roost(None, tmp_path) as roost:
        roost.install(fleet(2, vcpus=4))
        request = small_request(vcpus=1, project_id="shop", instance_uuids=(uuid_of("claimed"),))
        (decision,) = roost.work([request])
    tokens, settings = write_tokens(tmp_path, {"rita": ("reader",), "olga": ("observer",)})
    with serve(noun="up", folder=tmp_path, settings=settings) as server:
        yield server, tokens, decision.picks[0].instance_uuid


@pytest.mark.parametrize("name", ["rita", "olga"])
def test_clients_that_may_only_read_see_no_buttons(guarded, open_tab, name):
    server, tokens, uuid = guarded
    tab = open_tab(server.address)
    page = tab.open(f"/instances/{uuid}")
    tab.sign_in(tokens[name])
    expect(page.get_by_role("heading", name="Claim")).to_be_visible()
    allowed = {"Sign out"}
    for path, text in (
        (f"/instances/{uuid}", "Allocations"),
        ("/instances", "Instances"),
        ("/drains", "Current and recent drains"),
        ("/hosts/host-0", "Providers and their consumers" if name == "olga" else "does not allow this"),
    ):
        tab.open(path)
        expect(page.get_by_text(text).first).to_be_visible()
        buttons = {each.inner_text() for each in page.get_by_role("button").all()} - allowed
        assert buttons <= {"Find", "Try again"}, (path, buttons)
