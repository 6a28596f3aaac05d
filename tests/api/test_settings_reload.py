"""Settings that change while the product is served."""

import json
import os
import signal
import time
from pathlib import Path

import pytest

from roost.app import open_roost
from tests.support.fleets.products import fleet
from tests.support.servers.certificates import Authority, needs_openssl
from tests.support.servers.in_process_api import roost_api
from tests.support.servers.servers import serve
from tests.support.wait import wait_until

pytestmark = pytest.mark.long

ADMIN = {"x-auth-token": "admin"}
SMALL = {"flavor": {"vcpus": 1, "memory_mb": 16}}
PACKING_SETTINGS = "[filter_scheduler]\nram_weight_multiplier = -1.0\ncpu_weight_multiplier = -1.0\n"
PATIENCE_S = 60


@pytest.fixture
def folder(tmp_path):
    with open_roost(None, tmp_path) as roost:
        roost.install(fleet(2, vcpus=8))
    return tmp_path


def wait_for_events(server, name, *, count=1):
    """Wait until the log has this number of events of a name; return them."""
    deadline_s = time.monotonic() + PATIENCE_S
    while time.monotonic() < deadline_s:
        events = events_of(server, name)
        if len(events) >= count:
            return events
        time.sleep(0.05)
    raise AssertionError(server.said)


def events_of(server, name):
    """Return the events of a name in the log."""
    return [json.loads(line) for line in server.said.splitlines() if f'"event":"{name}"' in line]


def processes_of(server, name):
    """Return the processes that logged an event."""
    return {event["process"] for event in events_of(server, name)}


def hosts_of(server, count):
    decisions = [server.ask("POST", "/v1/decisions", SMALL, headers=ADMIN)[2] for _ in range(count)]
    return [each["picks"][0]["host"] for each in decisions]


def test_sighup_applies_new_settings_and_refuses_invalid_ones(folder):
    with serve(noun="up", folder=folder) as server:
        assert hosts_of(server, 2) == ["host-0", "host-1"]
        (folder / "roost.toml").write_text(PACKING_SETTINGS + "[notifications]\nheartbeat_s = 1.0\n")
        server.process.send_signal(signal.SIGHUP)
        (event,) = wait_for_events(server, "settings_loaded")
        assert event["needs_restart"] == "notifications"
        assert len(set(hosts_of(server, 4))) == 1
        (folder / "roost.toml").write_text("[filter_scheduler]\nhost_subset_size = 0\n")
        server.process.send_signal(signal.SIGHUP)
        (refused,) = wait_for_events(server, "settings_refused")
        assert "filter_scheduler.host_subset_size: must be 1 or more, got 0" in refused["error"]
        assert len(set(hosts_of(server, 2))) == 1
        assert server.stop() == 0


def test_command_line_options_need_no_restart(folder):
    with serve("--allow-plain-http", noun="up", folder=folder) as server:
        server.process.send_signal(signal.SIGHUP)
        (event,) = wait_for_events(server, "settings_unchanged")
        assert event["needs_restart"] is None


def test_all_workers_reload_settings_including_restarted_ones(tmp_path, postgres_url):
    with roost_api(fleet(2, vcpus=32), url=postgres_url):
        pass
    settings, undivided = tmp_path / "roost.toml", '[scheduler]\npartition = "off"\n'
    settings.write_text(undivided)  # With parts of the fleet, two workers choose different hosts.
    with serve("--workers", "2", "--database", postgres_url, noun="up", folder=tmp_path) as server:
        workers = {event["process"] for event in wait_for_events(server, "server_begins", count=2)}
        settings.write_text(undivided + PACKING_SETTINGS)
        server.process.send_signal(signal.SIGHUP)
        # A worker reloads its settings within a second. The first worker may be replaced before it reloads.
        wait_until(lambda: workers <= processes_of(server, "settings_loaded") | processes_of(server, "server_ends"))
        assert workers & processes_of(server, "settings_loaded")
        assert len(set(hosts_of(server, 6))) == 1
        wait_for_events(server, "workers_replaced")
        assert len(set(hosts_of(server, 6))) == 1
        os.kill(_child_of(server.process.pid), signal.SIGKILL)
        wait_for_events(server, "server_begins", count=5)
        assert len(set(hosts_of(server, 6))) == 1
        assert server.stop() == 0


def _child_of(pid):
    """Return a worker process of a server."""
    for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split():
        if b"spawn_main" in Path(f"/proc/{each}/cmdline").read_bytes():
            return int(each)
    raise AssertionError


@needs_openssl
def test_new_certificate_is_used_for_new_connections(folder):
    authority = Authority(folder)
    cert, key = authority.issue("server")
    with serve("--tls-cert", cert, "--tls-key", key, noun="up", folder=folder) as server:
        before = _served_serial_number(server, authority)
        authority.issue("server")
        server.process.send_signal(signal.SIGHUP)
        wait_for_events(server, "certificate_loaded")
        after = _served_serial_number(server, authority)
        assert after != before
        key.write_text("spoilt")
        server.process.send_signal(signal.SIGHUP)
        (event,) = wait_for_events(server, "certificate_refused")
        assert event["error"] == f"placement.tls_key: {key} holds no usable private key"
        assert _served_serial_number(server, authority) == after


def _served_serial_number(server, authority):
    context = authority.trusting()
    with server.connect() as plain, context.wrap_socket(plain, server_hostname="127.0.0.1") as client:
        return client.getpeercert()["serialNumber"]
