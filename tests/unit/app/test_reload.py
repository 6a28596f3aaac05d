import json
import signal

import msgspec
import pytest

from roost.app import Reloader, open_roost
from roost.model.settings.log_settings import Log
from tests.support.fleets.products import fleet, request


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "roost.toml"
    path.write_text("[filter_scheduler]\nram_weight_multiplier = 1.0\n")
    return path


@pytest.fixture
def product(file):
    with open_roost(file) as product:
        product.install(fleet(2, vcpus=4))
        yield product


@pytest.fixture
def reloader(product, file):
    return Reloader(product, config=file, environ={})


@pytest.fixture
def events(capfdbinary):
    """Return a function that returns the log events since its last call."""
    return lambda: [json.loads(line) for line in capfdbinary.readouterr().err.splitlines()]


def test_reloaded_settings_apply_to_later_decisions(product, reloader, file, events):
    assert [product.decide(request()).picks[0].host for _ in range(2)] == ["host-0", "host-1"]
    file.write_text("[filter_scheduler]\nram_weight_multiplier = -1.0\ncpu_weight_multiplier = -1.0\n")
    assert reloader.reload()
    packed = [product.decide(request()).picks[0].host for _ in range(3)]
    assert packed == [packed[0]] * 3
    logged = events()
    assert [(each["event"], each["fingerprint"]) for each in logged] == [
        ("settings_loaded", product.settings.fingerprint().hex())
    ]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[scheduler]\nmax_attempts = 0", "scheduler.max_attempts: must be 1 or more, got 0"),
        ("[scheduler]\nmax_attempts = 2\nbogus = 1", "scheduler.bogus: is not a setting"),
        ('[filter_scheduler]\nhost_subset_size = 2\nenabled_filters = ["A"]', "Scheduler Host Filter A could not"),
        ("nonsense", "is not TOML"),
    ],
)
def test_invalid_settings_are_refused_as_a_whole(product, reloader, file, events, text, problem):
    before = product.settings, product.rules, product.scheduler
    file.write_text(text)
    assert not reloader.reload()
    assert (product.settings, product.rules, product.scheduler) == before
    (event,) = events()
    assert event["event"] == "settings_refused"
    assert event["error"].startswith(str(file))
    assert problem in event["error"]


def test_missing_file_keeps_the_settings(product, reloader, file, events):
    before = product.settings
    file.unlink()
    assert not reloader.reload()
    assert product.settings is before
    assert events()[0]["error"] == f"--config: {file} does not exist; correct the path"


def test_equal_settings_change_nothing(product, reloader, events):
    before = product.scheduler
    assert not reloader.reload()
    assert product.scheduler is before
    assert events()[0]["event"] == "settings_unchanged"


def test_store_settings_need_a_restart(product, reloader, file, events):
    file.write_text("[store]\ngroup_max = 3\n[filter_scheduler]\nram_weight_multiplier = 2.0\n")
    assert reloader.reload()
    assert product.settings.store.group_max == 64
    assert events()[0]["needs_restart"] == "store"


def test_in_server_setting_needs_a_restart(reloader, file, events):
    file.write_text("[conductor]\nin_server = false\nact_timeout_s = 9.0\n")
    assert reloader.reload()
    assert events()[0]["needs_restart"] == "conductor.in_server"


def test_reload_reads_nova_conf_too(product, file, tmp_path):
    nova = tmp_path / "nova.conf"
    nova.write_text("[scheduler]\nmax_attempts = 4\n")
    assert Reloader(product, config=file, environ={"ROOST_NOVA_CONF": str(nova)}).reload()
    assert product.settings.scheduler.max_attempts == 4


def test_signal_requests_a_reload_and_the_owner_performs_it(product, reloader, file, events):
    before = signal.getsignal(signal.SIGHUP)
    try:
        reloader.watch()
        assert not reloader.reload_if_requested()
        file.write_text("[scheduler]\nmax_attempts = 4\n")
        signal.raise_signal(signal.SIGHUP)
        assert product.settings.scheduler.max_attempts == 3
        assert reloader.reload_if_requested()
        assert product.settings.scheduler.max_attempts == 4
        assert not reloader.reload_if_requested()
    finally:
        signal.signal(signal.SIGHUP, before)
    assert len(events()) == 1


def test_reload_changes_the_log_but_not_the_options_of_the_command_line(product, file):
    at_start = product.settings
    product.use(msgspec.structs.replace(at_start, log=Log(format="json")))
    reloader = Reloader(product, config=file, environ={}, file_settings=at_start)
    file.write_text('[log]\nlevel = "error"\nformat = "text"\n')
    assert reloader.reload()
    assert product.settings.log == Log(level="error", format="json")
