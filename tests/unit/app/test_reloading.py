import json
import signal

import pytest

from roost.app import Reloader, open_roost
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
    """Give what the log said since the last look."""
    return lambda: [json.loads(line) for line in capfdbinary.readouterr().err.splitlines()]


def test_new_settings_decide_from_then_on(product, reloader, file, events):
    assert [product.decide(request()).picks[0].host for _ in range(2)] == ["host-0", "host-1"]
    file.write_text("[filter_scheduler]\nram_weight_multiplier = -1.0\ncpu_weight_multiplier = -1.0\n")
    assert reloader.reload()
    packed = [product.decide(request()).picks[0].host for _ in range(3)]
    assert packed == [packed[0]] * 3
    told = events()
    assert [(each["event"], each["fingerprint"]) for each in told] == [
        ("settings_loaded", product.settings.fingerprint().hex())
    ]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[scheduler]\nmax_attempts = 0", "scheduler.max_attempts: must be 1 or more, got 0"),
        ("[scheduler]\nmax_attempts = 2\nbogus = 1", "scheduler.bogus: is not a setting"),
        ('[filter_scheduler]\nhost_subset_size = 2\nenabled_filters = ["A"]', "Scheduler Host Filter A could not"),
        ("nonsense", "is not TOML"),
    ],
)
def test_wrong_settings_are_refused_as_a_whole(product, reloader, file, events, text, told):
    before = product.settings, product.rules, product.scheduler
    file.write_text(text)
    assert not reloader.reload()
    assert (product.settings, product.rules, product.scheduler) == before
    (event,) = events()
    assert event["event"] == "settings_refused"
    assert event["error"].startswith(str(file))
    assert told in event["error"]


def test_a_file_that_is_gone_leaves_all_as_it_is(product, reloader, file, events):
    before = product.settings
    file.unlink()
    assert not reloader.reload()
    assert product.settings is before
    assert events()[0]["error"] == f"--config: there is no file {file}"


def test_equal_settings_change_nothing(product, reloader, events):
    before = product.scheduler
    assert not reloader.reload()
    assert product.scheduler is before
    assert events()[0]["event"] == "settings_unchanged"


def test_the_store_stays_as_it_was_opened(product, reloader, file, events):
    file.write_text("[store]\ngroup_max = 3\n[filter_scheduler]\nram_weight_multiplier = 2.0\n")
    assert reloader.reload()
    assert product.settings.store.group_max == 64
    assert events()[0]["needs_restart"] == "store"


def test_whether_a_server_works_on_operations_is_read_at_the_start_alone(reloader, file, events):
    file.write_text("[conductor]\nin_server = false\nact_timeout_s = 9.0\n")
    assert reloader.reload()
    assert events()[0]["needs_restart"] == "conductor.in_server"


def test_a_nova_conf_is_read_anew_too(product, file, tmp_path):
    nova = tmp_path / "nova.conf"
    nova.write_text("[scheduler]\nmax_attempts = 4\n")
    assert Reloader(product, config=file, environ={"ROOST_NOVA_CONF": str(nova)}).reload()
    assert product.settings.scheduler.max_attempts == 4


def test_a_signal_asks_and_the_owner_reloads(product, reloader, file, events):
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
