"""The comparison of settings in a real browser, on recorded decisions."""

import json
import tomllib
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import expect

from roost.app import open_roost
from roost.model.fleet import Departure
from roost.simulator.stable_uuids import uuid_of
from tests.support.fleets.products import fleet
from tests.support.fleets.worlds import small_request
from tests.support.servers.servers import serve

DECISIONS = 30
LONG_MS = 60_000  # the first comparison starts the reader process


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Yield a server with six hosts and decisions, one of which was refused."""
    folder = tmp_path_factory.mktemp("policies")
    with open_roost(None, folder) as roost:
        roost.install(fleet(6, vcpus=8))
        for number in range(DECISIONS - 1):
            roost.work([small_request(vcpus=1, memory_mb=64, instance_uuids=(uuid_of(f"i{number}"),))])
        roost.work([Departure(instance_uuids=(uuid_of("i3"),)), small_request(vcpus=64)])
    settings = "[filter_scheduler]\ndisk_weight_multiplier = 0.5"
    with serve(noun="up", folder=folder, settings=settings) as running:
        yield running


def compare(page):
    page.get_by_role("button", name="Compare", exact=True).click()
    expect(page.get_by_role("heading", name=f"{DECISIONS} recorded requests, decided again")).to_be_visible(
        timeout=LONG_MS
    )


def cells_of(page, name):
    """Return the texts of a row of the figures."""
    return page.get_by_role("region", name="Figures of each set").get_by_role("row", name=name).get_by_role("cell")


def test_removal_of_a_set_leaves_the_texts_of_the_others(server, open_tab):
    page = open_tab(server.address).open("/policies")
    page.get_by_role("button", name="Add a set").click()
    for name, text in (("Pack", "[filter_scheduler]\nram_weight_multiplier = -7"), ("Set 3", "")):
        page.get_by_role("group", name=f"Edit {name} as").get_by_role("button", name="Settings file").click()
        page.get_by_label(f"Settings of {name}").fill(text)
    page.get_by_role("button", name="Remove Pack").click()
    editor = page.get_by_role("region", name="Set 2: Set 3")
    expect(editor).to_contain_text("The settings in force, without a change")
    editor.get_by_role("button", name="Settings file").click()
    expect(editor.get_by_label("Settings of Set 3")).to_have_value("")


def test_sets_are_compared_with_figures_spreads_maps_and_decisions(server, open_tab):
    page = open_tab(server.address).open("/policies")
    expect(page.get_by_role("textbox", name="Name of set 1")).to_have_value("In force")
    expect(page.get_by_role("spinbutton", name="disk in In force")).to_have_value("0.5")
    compare(page)
    expect(cells_of(page, "Granted requests")).to_have_text(["Granted requests", "29", "29"])
    expect(cells_of(page, "Refused requests")).to_have_text(["Refused requests", "1", "1"])
    expect(cells_of(page, "Other than recorded")).to_contain_text(["Other than", "0", ""])
    expect(cells_of(page, "Hosts in use at the end").nth(2)).to_have_text("−2 4")
    expect(page.get_by_role("img", name="VCPU by host under Pack")).to_be_visible()
    expect(page.get_by_role("img", name="Pack: 0.0% to 100.0%")).to_be_visible()
    expect(page.get_by_role("img", name="Hosts that got instances: last In force 6, Pack 4")).to_be_visible()
    table = page.get_by_role("region", name="Decisions that differ")
    row = table.get_by_role("row").nth(1)
    expect(row).to_contain_text("≠ host-")
    row.get_by_role("link").click()
    expect(page.get_by_role("region", name="Result")).to_be_visible(timeout=LONG_MS)


def test_hosts_of_the_maps_are_compared_by_keys(server, open_tab):
    page = open_tab(server.address).open("/policies")
    compare(page)
    canvas = page.get_by_role("img", name="VCPU by host under In force")
    canvas.focus()
    page.keyboard.press("ArrowRight")
    expect(page.get_by_text("host-0: In force")).to_have_text("host-0: In force 62.5% · Pack 87.5%")
    page.get_by_role("combobox", name="Resource class").select_option("MEMORY_MB")
    expect(page.get_by_role("img", name="Memory by host under Pack")).to_be_visible()


def test_form_and_settings_file_are_two_views_of_a_set(server, open_tab):
    page = open_tab(server.address).open("/policies")
    pack = page.get_by_role("region", name="Set 2: Pack")
    pack.get_by_role("spinbutton", name="cpu in Pack").fill("-3")
    pack.get_by_role("button", name="Settings file").click()
    text = pack.get_by_role("textbox", name="Settings of Pack")
    expect(text).to_have_value(
        "[filter_scheduler]\ncpu_weight_multiplier = -3\nram_weight_multiplier = -1\ndisk_weight_multiplier = -1\n"
    )
    text.fill("[filter_scheduler]\ncpu_weight_multiplier = many")
    expect(pack.get_by_role("alert")).to_contain_text("Line 2: many must be a number")
    text.fill('[filter_scheduler]\nenabled_filters = ["ComputeFilter", "NoSuchFilter"]')
    expect(pack.get_by_role("alert")).to_have_count(0)
    page.get_by_role("button", name="Compare", exact=True).click()
    expect(page.get_by_role("alert")).to_contain_text("NoSuchFilter", timeout=LONG_MS)
    pack.get_by_role("button", name="Form").click()
    pack.get_by_text("Filters: 2 enabled").click()
    pack.get_by_role("checkbox", name="NoSuchFilter").uncheck()
    expect(pack.get_by_role("checkbox", name="ComputeFilter")).to_be_checked()
    compare(page)


def test_set_is_downloaded_as_a_settings_file(server, open_tab):
    page = open_tab(server.address).open("/policies")
    pack = page.get_by_role("region", name="Set 2: Pack")
    with page.expect_download() as download:
        pack.get_by_role("button", name="Download as TOML").click()
    assert download.value.suggested_filename == "pack.toml"
    saved = tomllib.loads(Path(download.value.path()).read_text(encoding="utf-8"))
    assert saved == {
        "filter_scheduler": {
            "cpu_weight_multiplier": -1,
            "ram_weight_multiplier": -1,
            "disk_weight_multiplier": -1,
        }
    }
    with page.expect_download() as download:
        page.get_by_role("region", name="Set 1: In force").get_by_role("button", name="Download as TOML").click()
    saved = tomllib.loads(Path(download.value.path()).read_text(encoding="utf-8"))
    assert saved == {"filter_scheduler": {"disk_weight_multiplier": 0.5}}
    expect(page.get_by_text("roost replay TRACE --config in-force.toml --config pack.toml")).to_be_visible()


def test_link_shares_sets_and_compares_them(server, open_tab):
    sets = quote(json.dumps([["a", {}], ["b", {}], ["c", {"filter_scheduler": {"cpu_weight_multiplier": -1}}]]))
    page = open_tab(server.address, size=(390, 844)).open(f"/policies?sets={sets}&newest=50")
    heading = page.get_by_role("heading", name=f"{DECISIONS} recorded requests, decided again")
    expect(heading).to_be_visible(timeout=LONG_MS)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    page.get_by_role("button", name="Remove c").click()
    page.get_by_role("textbox", name="Name of set 2").fill("a")
    expect(page.get_by_text("Two sets have the same name.")).to_be_visible()
    expect(page.get_by_role("button", name="Compare", exact=True)).to_be_disabled()
