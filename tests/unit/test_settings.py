from pathlib import Path

import pytest

from roost.errors import BadSettings
from roost.settings import data_folder, find_settings, load_settings, read_settings, schema


def settings_path(argument=None, environ=None, existing=()):
    return find_settings(argument, environ or {}, lambda path: str(path) in existing)


def test_settings_file_is_the_first_one_named_or_found():
    everything = ("a.toml", "b.toml", "roost.toml", "/etc/roost/roost.toml")
    environ = {"ROOST_CONFIG": "b.toml"}
    assert settings_path("a.toml", environ, everything) == Path("a.toml")
    assert settings_path(None, environ, everything) == Path("b.toml")
    assert settings_path(None, {}, everything) == Path("roost.toml")
    assert settings_path(None, {}, everything[3:]) == Path("/etc/roost/roost.toml")
    assert settings_path() is None


@pytest.mark.parametrize(("argument", "environ"), [("x.toml", {}), (None, {"ROOST_CONFIG": "x.toml"})])
def test_named_settings_file_must_exist(argument, environ):
    with pytest.raises(BadSettings, match=r"x\.toml does not exist; correct the path"):
        settings_path(argument, environ, ("roost.toml",))


def test_data_folder_is_the_named_one_or_a_writable_default():
    environ = {"ROOST_DATA": "/d", "HOME": "/u"}
    assert data_folder("/a", environ, is_root=True) == Path("/a")
    assert data_folder(None, environ, is_root=True) == Path("/d")
    assert data_folder(None, {"HOME": "/r"}, is_root=True) == Path("/var/lib/roost")
    assert data_folder(None, {"HOME": "/u"}, is_root=False) == Path("/u/.local/share/roost")
    with pytest.raises(BadSettings, match="HOME"):
        data_folder(None, {}, is_root=False)


@pytest.mark.shows("S156")
def test_settings_without_a_file_are_the_defaults():
    settings = load_settings(None)
    assert settings.filter_scheduler.host_subset_size == 1
    assert settings.tables["DEFAULT"] == {
        "service_down_time": 60,
        "default_availability_zone": "nova",
        "cpu_allocation_ratio": 16.0,
        "ram_allocation_ratio": 1.5,
        "disk_allocation_ratio": 1.0,
    }
    assert settings.default.default_availability_zone == "nova"


def test_owners_of_a_shared_section_get_their_own_keys():
    settings = read_settings("""
        [DEFAULT]
        service_down_time = 30
        default_availability_zone = "home"
        [filter_scheduler]
        host_subset_size = 3
        ram_weight_multiplier = -2
        enabled_filters = ["compute"]
        [scheduler]
        max_attempts = 5
        [store]
        url = "postgresql://u:p@h/d"
    """)
    assert settings.filter_scheduler.host_subset_size == 3
    assert settings.filter_scheduler.enabled_filters == ("compute",)
    assert settings.tables["filter_scheduler"]["ram_weight_multiplier"] == -2.0
    assert settings.tables["filter_scheduler"]["cpu_weight_multiplier"] == 1.0
    assert "host_subset_size" not in settings.tables["filter_scheduler"]
    assert (settings.tables["DEFAULT"]["service_down_time"], settings.default.default_availability_zone) == (30, "home")
    assert (settings.scheduler.max_attempts, settings.store.url) == (5, "postgresql://u:p@h/d")


@pytest.mark.shows("S156")
@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("nonsense", "roost.toml: is not TOML"),
        ("[scheduler]\nmax_attempts = " + "9" * 5000, "roost.toml: is not TOML: Exceeds the limit"),
        ("a = " + "[" * 3000, "roost.toml: is not TOML: maximum recursion"),
        ('[filter_scheduler]\nweight_classes = ["sys.exit"]', "sys.exit returns no classes"),
        ("a = 1", "roost.toml: a: is outside a section"),
        ("scheduler = 1", "roost.toml: scheduler: is outside a section"),
        ("[schedular]", "roost.toml: schedular: is not a section; the nearest known name is scheduler"),
        ("[default]", "roost.toml: default: is not a section; the nearest known name is DEFAULT"),
        ("[Defaults]", "roost.toml: Defaults: is not a section; the nearest known name is DEFAULT"),
        (
            "[scheduler]\nmax_attempt = 1",
            "scheduler.max_attempt: is not a setting; the nearest known name is max_attempts",
        ),
        (
            "[filter_scheduler]\nram_weight_multiplyer = 1",
            "filter_scheduler.ram_weight_multiplyer: is not a setting; the nearest known name is ram_weight_multiplier",
        ),
        (
            "[scheduler]\nservice_down_time = 1",
            "scheduler.service_down_time: is not a setting; it belongs to section DEFAULT",
        ),
        ("[scheduler]\nmax_attempts = 0", "scheduler.max_attempts: must be 1 or more, got 0"),
        ("[scheduler]\nmax_attempts = 1.5", "scheduler.max_attempts: must be a whole number, got 1.5"),
        ("[scheduler]\nmax_attempts = true", "scheduler.max_attempts: must be a whole number, got true"),
        ("[filter_scheduler]\nhost_subset_size = 0", "filter_scheduler.host_subset_size: must be 1 or more, got 0"),
        (
            '[filter_scheduler]\nhost_subset_size = "1"',
            "filter_scheduler.host_subset_size: must be a whole number, got '1'",
        ),
        ('[filter_scheduler]\nenabled_filters = "A,B"', "filter_scheduler.enabled_filters: must be a list, got 'A,B'"),
        (
            "[filter_scheduler]\nenabled_filters = [1]",
            "filter_scheduler.enabled_filters: entry 1 must be a text, got 1",
        ),
        ('[filter_scheduler]\nenabled_filters = ["A", "B"]', "Scheduler Host Filter A, B could not be found."),
        ('[filter_scheduler]\nweight_classes = ["x.y"]', "filter_scheduler.weight_classes: x.y cannot be loaded"),
        ("[filter_scheduler]\nram_weight_multiplier = nan", "ram_weight_multiplier: must be a finite number, got nan"),
        ("[filter_scheduler]\nram_weight_multiplier = inf", "ram_weight_multiplier: must be a finite number, got inf"),
        ("[filter_scheduler]\nsoft_affinity_weight_multiplier = -1", "must be a number >= 0.0, got -1"),
        ("[DEFAULT]\nservice_down_time = -1", "DEFAULT.service_down_time: must be a whole number >= 0, got -1"),
        ('[DEFAULT]\ndefault_availability_zone = ""', "DEFAULT.default_availability_zone: must not be empty"),
        ('[store]\nsynchronous = "OFF"', "store.synchronous: must be FULL or NORMAL, got 'OFF'"),
        ("[store]\ngroup_max = 0", "store.group_max: must be 1 or more, got 0"),
        ("[store]\nevidence_keep_days = -1", "store.evidence_keep_days: must be 0 or more, got -1"),
        ("[agent]\nreserved_host_cpus = -1", "agent.reserved_host_cpus: must be a whole number >= 0, got -1"),
        ("[agent]\ncpu_allocation_ratio = -1", "agent.cpu_allocation_ratio: must be a number >= 0.0, got -1"),
        (
            "[agent]\ninitial_ram_allocation_ratio = 0",
            "agent.initial_ram_allocation_ratio: must be more than 0, got 0.0",
        ),
        ("[agent]\nreshape_tries = 0", "agent.reshape_tries: must be a whole number >= 1, got 0"),
        ("[agent]\nupdate_s = -1", "agent.update_s: must be a number >= 0.0, got -1"),
        ("[agent]\ndriver_timeout_s = 0", "agent.driver_timeout_s: must be more than 0, got 0.0"),
        ('[agent]\nperiodic_reshape = "no"', "agent.periodic_reshape: must be die or log, got 'no'"),
    ],
)
def test_invalid_setting_error_names_the_file_and_the_key(text, problem):
    with pytest.raises(BadSettings) as caught:
        read_settings(text)
    assert problem in str(caught.value)


def test_unreadable_settings_file_is_named(tmp_path):
    with pytest.raises(BadSettings, match="cannot be read"):
        load_settings(tmp_path)
    (tmp_path / "latin.toml").write_bytes(b"# \xff")
    with pytest.raises(BadSettings, match=r"latin\.toml: is not UTF-8"):
        load_settings(tmp_path / "latin.toml")


def test_equal_settings_have_equal_fingerprints():
    default, same, other = (
        read_settings(text)
        for text in ("", "[scheduler]\nmax_attempts = 3", "[filter_scheduler]\nram_weight_multiplier = 2")
    )
    assert default.fingerprint() == same.fingerprint() != other.fingerprint()


def test_store_url_is_not_in_the_evidence():
    settings = read_settings('[store]\nurl = "postgresql://u:secret@h/d"')
    assert b"secret" not in settings.body()
    assert settings.fingerprint() == load_settings(None).fingerprint()


def test_every_setting_has_a_description():
    options = {(each.section, each.key): each for each in schema()}
    assert options["filter_scheduler", "ram_weight_multiplier"].owners == ("ram",)
    assert options["filter_scheduler", "host_subset_size"].owners == ()
    assert [each.key for each in options.values() if not each.description.endswith(".")] == []
