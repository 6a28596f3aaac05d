"""The view of the capacity: trend, flavors by zones, and questions about another fleet."""

import re
import time

import pytest
from playwright.sync_api import expect

from roost.app import open_roost
from roost.model.evidence.fleet_history import (
    MINUTE_S,
    ClassAmounts,
    DecisionCounts,
    HistoryRow,
    encode_amounts,
    encode_counts,
)
from roost.store.upkeep.stored_history import SqlHistory
from tests.support.fleets.worlds import aggregate, host, merge_fleets
from tests.support.servers.servers import serve
from tests.support.servers.token_files import write_tokens

ADMIN = {"x-auth-token": "admin"}
ROWS = 50
NO_SURVEYS = "[monitoring]\nsurvey_interval_s = 0"


def build(folder):
    """Create a database with two hosts in each of two zones, 8 VCPU and 32 MiB each."""
    hosts = [host(f"{zone}-{number}", aggregates=[zone]) for zone in ("east", "west") for number in range(2)]
    zones = [aggregate(zone, availability_zone=zone) for zone in ("east", "west")]
    with open_roost(None, folder) as roost:
        roost.install(merge_fleets(*zones, *hosts))


def write_history(folder):
    """Write 50 minutes in which the use of VCPU rises by 0.1 a minute, and that of memory does not change."""
    history = SqlHistory(str(folder / "roost.db"))
    now = int(time.time() // MINUTE_S)
    for age in range(ROWS, 0, -1):
        used = 10 - age // 10
        cells = [
            cell
            for zone in ("east", "west")
            for cell in (
                ClassAmounts("MEMORY_MB", zone, 64, 8, 4, 0),
                ClassAmounts("VCPU", zone, 16, used // 2 + (used % 2 if zone == "east" else 0), 2, 0),
            )
        ]
        history.insert(HistoryRow(now - age, "", encode_amounts(cells), b""))
        counts = DecisionCounts(3, 0, {"search/amount": 2, "io_ops/rule": 1})
        history.insert(HistoryRow(now - age, "test", b"", encode_counts(counts)))


@pytest.fixture
def server(tmp_path):
    build(tmp_path)
    write_history(tmp_path)
    # Without surveys, the history has only the rows above.
    with serve(noun="up", folder=tmp_path, settings=NO_SURVEYS) as running:
        for name, vcpus in (("small", 2), ("giant", 64)):
            status, _, _ = running.ask("PUT", f"/v1/flavors/{name}", {"vcpus": vcpus, "memory_mb": 1}, headers=ADMIN)
            assert status == 200
        yield running


def cells(row):
    """Return the texts of a row."""
    return [text.strip() for text in row.get_by_role("cell").all_inner_texts()]


def row_of(page, table, name):
    return page.get_by_role("region", name=table).get_by_role("row").filter(has=page.get_by_role("cell", name=name))


def test_trend_says_what_runs_out_first(server, open_tab):
    page = open_tab(server.address).open("/capacity?period=hour")
    rows = page.get_by_role("region", name="What runs out first").get_by_role("row")
    expect(rows).to_have_count(3)
    first, second = cells(rows.nth(1)), cells(rows.nth(2))
    # 22 of 32 VCPU are free, and 0.1 are claimed each minute: 220 minutes.
    assert (first[0], first[1]) == ("VCPU", "4 hours")
    assert (second[0], second[1]) == ("Memory", "no end in sight")
    assert first[4:7] == ["31.3%", "22", "18.2%"], first
    expect(page.get_by_text(re.compile("^VCPU runs out first: in 4 hours"))).to_be_visible()
    expect(page.get_by_text("150 granted, 150 refused")).to_be_visible()
    reasons = page.get_by_role("region", name="Refusals by reason").get_by_role("row")
    assert [cells(reasons.nth(at)) for at in (1, 2)] == [["Hosts lack an amount", "100"], ["Filter io_ops", "50"]]


def test_zone_and_resource_are_chosen_and_stay_in_the_address(server, open_tab):
    page = open_tab(server.address).open("/capacity?period=hour")
    page.get_by_label("Zone", exact=True).first.select_option("west")
    expect(row_of(page, "What runs out first", "VCPU").get_by_role("cell").nth(5)).to_have_text("11")
    page.get_by_label("Resource of the trend").select_option("Memory")
    expect(page.get_by_role("heading", name="Trend of Memory")).to_be_visible()
    assert re.search(r"\?period=hour&zone=west&class=MEMORY_MB$", page.url)
    page.reload()
    expect(page.get_by_role("heading", name="Trend of Memory")).to_be_visible()


def test_flavors_are_counted_by_zone(server, open_tab):
    page = open_tab(server.address).open("/capacity")
    table = "How many more instances of each flavor fit, by zone"
    expect(row_of(page, table, "small").get_by_role("cell").nth(1)).to_have_text("16")
    assert cells(row_of(page, table, "small")) == ["small", "16", "8", "8", "VCPU"]
    expect(row_of(page, table, "giant")).to_contain_text("4 hosts lack 64 VCPU or more")
    server.ask("POST", "/v1/decisions", {"flavor": "small", "count": 4}, headers=ADMIN)
    page.get_by_role("button", name="Count again").click()
    expect(row_of(page, table, "small").get_by_role("cell").nth(1)).to_have_text("12")


def test_hosts_are_added_in_a_question_only(server, open_tab):
    page = open_tab(server.address).open("/capacity?period=hour")
    form = page.get_by_role("form", name="Add hosts")
    form.get_by_label("Number of hosts").fill("3")
    form.get_by_label("Kind").select_option(index=0)
    form.get_by_role("button", name="Count with these hosts").click()
    expect(page.get_by_role("heading", name=re.compile("^With 3 more hosts of 8 VCPU"))).to_be_visible()
    table = re.compile("^How many more fit: With 3 more hosts")
    expect(row_of(page, table, "small").get_by_role("cell").nth(3)).to_have_text("+12")
    assert cells(row_of(page, table, "small"))[1:4] == ["16", "28", "+12"]
    expect(page.get_by_text("Fit neither now nor then: giant.")).to_be_visible()
    use = row_of(page, re.compile("^Use of resources"), "VCPU")
    assert cells(use) == ["VCPU", "31.3%", "17.9%", "4 hours", "8 hours"]
    assert len(server.ask("GET", "/v1/hosts", headers=ADMIN)[2]["hosts"]) == 4


def test_lost_zone_shows_what_its_instances_would_lack(server, open_tab):
    page = open_tab(server.address).open("/capacity?period=hour")
    form = page.get_by_role("form", name="Lose a zone")
    form.get_by_label("Zone").select_option("west")
    form.get_by_role("button", name="Count without this zone").click()
    table = "How many more fit: Without west"
    expect(row_of(page, table, "small").get_by_role("cell").nth(3)).to_have_text("−8")
    assert cells(row_of(page, table, "small"))[1:4] == ["16", "8", "−8"]
    use = row_of(page, "Use of resources: Without west", "VCPU")
    assert cells(use)[:3] == ["VCPU", "31.3%", "62.5%"]


@pytest.fixture
def new_server(tmp_path):
    build(tmp_path)
    with serve(noun="up", folder=tmp_path, settings=NO_SURVEYS) as running:
        yield running


def test_new_server_says_that_there_is_no_history(new_server, open_tab):
    page = open_tab(new_server.address).open("/capacity")
    expect(page.get_by_text("The history is empty.")).to_be_visible()
    expect(page.get_by_role("heading", name="How many more fit")).to_be_visible()


def test_reader_may_not_see_the_capacity(tmp_path, open_tab):
    tokens, settings = write_tokens(tmp_path, {"rita": ("reader",)})
    with serve(noun="up", folder=tmp_path, settings=settings) as server:
        tab = open_tab(server.address)
        page = tab.open("/capacity")
        tab.sign_in(tokens["rita"])
        expect(page.get_by_text("Your roles do not allow you to see the capacity of the fleet.")).to_be_visible()


@pytest.mark.parametrize(("size", "scheme"), [((1440, 900), "light"), ((390, 844), "dark")])
def test_page_fits_and_has_names_for_screen_readers(server, open_tab, size, scheme):
    page = open_tab(server.address, size=size, scheme=scheme).open("/capacity?period=hour")
    expect(page.get_by_role("img", name=re.compile("^Used share by resource: last"))).to_be_visible()
    expect(page.get_by_role("img", name=re.compile("^Trend of VCPU: last used 31%"))).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
