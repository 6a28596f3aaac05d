"""The settings in force, the audit, and the changes by clients in a real browser."""

import re

import pytest
from playwright.sync_api import expect

from roost.app import open_roost
from tests.support.fleets.products import fleet
from tests.support.servers.servers import serve

ADMIN = {"x-auth-token": "ada", "x-roles": "admin"}
LONG_MS = 60_000  # the first audit starts the reader process


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """Yield a server with a settings file, and with changes by clients."""
    folder = tmp_path_factory.mktemp("settings")
    with open_roost(None, folder) as roost:
        roost.install(fleet(3, vcpus=8))
    settings = '[filter_scheduler]\ncpu_weight_multiplier = 2.5\n[notifications]\nwebhook = "http://127.0.0.1:9/secret"'
    with serve("--log-level", "warning", noun="up", folder=folder, settings=settings) as running:
        for number in range(55):
            body = {"vcpus": 1, "memory_mb": number + 1}
            assert running.ask("PUT", f"/v1/flavors/f{number}", body, headers=ADMIN)[0] == 200
        disabled = {"disabled": True, "disabled_reason": "new disk"}
        assert running.ask("PATCH", "/v1/services/host-1", disabled, headers=ADMIN)[0] == 200
        yield running


def test_settings_have_their_sources_and_no_secrets(server, open_tab):
    page = open_tab(server.address).open("/settings")
    table = page.get_by_role("region", name="Settings in force")
    row = table.get_by_role("row", name="filter_scheduler.cpu_weight_multiplier")
    expect(row).to_contain_text(re.compile(r"2\.5default 1.*roost\.toml:3"))
    expect(table.get_by_role("row", name="log.level")).to_contain_text("command line")
    expect(table.get_by_role("row", name="notifications.webhook")).to_contain_text("http://127.0.0.1:9/***")
    expect(table).not_to_contain_text("host_subset_size")
    page.get_by_role("searchbox", name="Find a setting").fill("host_subset")
    expect(table.get_by_role("row", name="filter_scheduler.host_subset_size")).to_contain_text("default")
    page.get_by_role("searchbox", name="Find a setting").fill("")
    page.get_by_role("button", name="All", exact=True).click()
    page.get_by_role("combobox", name="Section").select_option("pci")
    expect(table.get_by_role("row")).to_have_count(2)


def test_rules_are_in_order_with_multipliers_and_options(server, open_tab):
    page = open_tab(server.address).open("/settings")
    filters = page.get_by_role("region", name="Filters in their order").get_by_role("row")
    expect(filters.nth(1)).to_contain_text(re.compile(r"1compute ComputeFilterDEFAULT\.service_down_time = 60"))
    weighers = page.get_by_role("region", name="Weighers")
    expect(weighers.get_by_role("row", name="cpu CPUWeigher")).to_contain_text("2.5")
    page.get_by_role("link", name="Compare with other settings").click()
    expect(page.get_by_role("heading", name="Policies")).to_be_visible()


def test_audit_runs_and_is_recorded(server, open_tab):
    page = open_tab(server.address).open("/settings")
    page.get_by_role("button", name="Run an audit").click()
    expect(page.get_by_text("No findings: the database is consistent.")).to_be_visible(timeout=LONG_MS)
    expect(page.get_by_text(re.compile("Last audit .* ago: 0 findings"))).to_be_visible(timeout=LONG_MS)


def test_changes_are_filtered_and_paged(server, open_tab):
    page = open_tab(server.address).open("/settings")
    page.get_by_role("link", name="All changes").click()
    expect(page.get_by_role("heading", name="Changes", exact=True)).to_be_visible()
    table = page.get_by_role("region", name="Changes")
    expect(table.get_by_role("row")).to_have_count(51, timeout=LONG_MS)
    first = table.get_by_role("row").nth(1)
    expect(first).to_contain_text("ada")
    expect(first).to_contain_text("host: disable")
    expect(first).to_contain_text("reason: new disk")
    page.get_by_role("button", name="Next page").click()
    expect(table.get_by_role("row")).to_have_count(7)
    page.get_by_role("button", name="First page").click()
    page.get_by_role("combobox", name="Kind of change").select_option("host")
    expect(table.get_by_role("row")).to_have_count(2)
    page.get_by_role("combobox", name="Kind of change").select_option("")
    page.get_by_role("searchbox", name="Name or uuid of an object").fill("f7")
    page.get_by_role("button", name="Find").click()
    expect(table.get_by_role("row")).to_have_count(2)
    assert "object=f7" in page.url
    page.reload()
    expect(table.get_by_role("row").nth(1)).to_contain_text("flavor: create")
    page.get_by_role("button", name="Hour").click()
    expect(table.get_by_role("row")).to_have_count(2)


def test_views_fit_a_phone(server, open_tab):
    page = open_tab(server.address, size=(390, 844), scheme="dark").open("/settings")
    expect(page.get_by_role("region", name="Weighers")).to_be_visible(timeout=LONG_MS)
    assert page.evaluate("document.documentElement.scrollWidth") == 390
