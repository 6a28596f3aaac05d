import pytest
from msgspec.structs import replace

from roost.compat.nova_conf import read_nova_conf
from roost.errors import BadSettings
from roost.model.settings.agent_settings import Agent
from roost.settings import load_settings, load_with_sources


@pytest.fixture
def read(tmp_path):
    """Return a function that reads settings from the text of a nova.conf and of an optional settings file."""

    def read(text, toml=None, **more):
        nova, own = tmp_path / "nova.conf", tmp_path / "roost.toml"
        nova.write_text(text)
        if toml is not None:
            own.write_text(toml)
        return load_with_sources(None if toml is None else own, nova_conf=nova, **more)

    return read


def default_settings():
    """Return the default settings with an empty nova.conf."""
    default = load_settings(None)
    return replace(default, agent=replace(default.agent, provider_config_location="/etc/nova/provider_config/"))


def test_each_section_is_read_under_its_present_names(read):
    result = read("""
[DEFAULT]
default_availability_zone = home
service_down_time = 90
[filter_scheduler]
enabled_filters = ComputeFilter,
    IoOpsFilter, NumInstancesFilter
available_filters = nova.scheduler.filters.all_filters
weight_classes = nova.scheduler.weights.ram.RAMWeigher, nova.scheduler.weights.cpu.CPUWeigher
ram_weight_multiplier = -2
shuffle_best_same_weighed_hosts = Yes
isolated_hosts = a, b
[scheduler]
max_attempts = ${filter_scheduler.attempts}
[metrics]
weight_setting = cpu.percent=-1.0, x=2
required = off
[workarounds]
disable_fallback_pcpu_query = on
[filter_scheduler]
attempts = 5
""").settings
    assert result.filter_scheduler.enabled_filters == ("ComputeFilter", "IoOpsFilter", "NumInstancesFilter")
    assert result.filter_scheduler.shuffle_best_same_weighed_hosts is True
    assert len(result.filter_scheduler.weight_classes) == 2
    rules = result.tables["filter_scheduler"]
    assert (rules["ram_weight_multiplier"], rules["isolated_hosts"]) == (-2.0, ("a", "b"))
    assert (result.default.default_availability_zone, result.tables["DEFAULT"]["service_down_time"]) == ("home", 90)
    assert (result.tables["metrics"]["weight_setting"], result.tables["metrics"]["required"]) == (
        ("cpu.percent=-1.0", "x=2"),
        False,
    )
    assert (result.scheduler.max_attempts, result.workarounds.disable_fallback_pcpu_query) == (5, True)


@pytest.mark.shows("S220")
def test_icehouse_names_map_to_present_names(read):
    result = read("""
[DEFAULT]
scheduler_driver = nova.scheduler.chance.ChanceScheduler
scheduler_driver_task_period = 30
scheduler_available_filters = nova.scheduler.filters.all_filters
scheduler_available_filters = nova.scheduler.filters.ram_filter.RamFilter
scheduler_default_filters = RetryFilter, AvailabilityZoneFilter, RamFilter, ComputeFilter
scheduler_weight_classes = nova.scheduler.weights.all_weighers
scheduler_host_subset_size = 4
scheduler_max_attempts = 7
ram_allocation_ratio = 1.25
ram_weight_multiplier = 3
max_io_ops_per_host = 2
""")
    settings, rules = result.settings, result.settings.tables["filter_scheduler"]
    assert (settings.scheduler.driver, settings.scheduler.periodic_task_interval) == ("chance", 30.0)
    assert (settings.scheduler.max_attempts, settings.filter_scheduler.host_subset_size) == (7, 4)
    assert settings.filter_scheduler.available_filters == (
        "nova.scheduler.filters.all_filters",
        "nova.scheduler.filters.ram_filter.RamFilter",
    )
    assert settings.filter_scheduler.enabled_filters[1:3] == ("AvailabilityZoneFilter", "RamFilter")
    assert (settings.tables["DEFAULT"]["ram_allocation_ratio"], rules["ram_weight_multiplier"]) == (1.25, 3.0)
    assert rules["max_io_ops_per_host"] == 2
    assert result.notes == ()


def test_present_name_and_last_line_take_precedence(read):
    text = "[DEFAULT]\nscheduler_max_attempts = 7\n[scheduler]\nmax_attempts = 4\nmax_attempts = 5\n"
    assert read(text).settings.scheduler.max_attempts == 5


@pytest.mark.parametrize(
    ("name", "driver"),
    [
        ("filter_scheduler", "filter"),
        ("caching_scheduler", "caching"),
        ("nova.scheduler.caching_scheduler.CachingScheduler", "caching"),
        ("nova.scheduler.filter_scheduler.FilterScheduler", "filter"),
        ("chance_scheduler", "chance"),
    ],
)
def test_drivers_are_recognised_by_name_and_path(read, name, driver):
    assert read(f"[scheduler]\ndriver = {name}\n").settings.scheduler.driver == driver


def test_nova_conf_overrides_the_settings_file_and_both_are_sources(read, tmp_path):
    toml = """[filter_scheduler]
host_subset_size = 2
ram_weight_multiplier = 5
[scheduler]
max_attempts = 9
"""
    result = read("# a comment\n[filter_scheduler]\nhost_subset_size = 3\n", toml)
    assert result.settings.filter_scheduler.host_subset_size == 3
    assert result.settings.scheduler.max_attempts == 9
    assert result.sources == {
        ("filter_scheduler", "host_subset_size"): f"{tmp_path}/nova.conf:3",
        ("filter_scheduler", "ram_weight_multiplier"): f"{tmp_path}/roost.toml:3",
        ("scheduler", "max_attempts"): f"{tmp_path}/roost.toml:5",
        ("agent", "provider_config_location"): f"{tmp_path}/nova.conf, by default",
    }


def test_agent_settings_come_from_two_sections(read, tmp_path):
    result = read("""[DEFAULT]
reserved_host_memory_mb = 1024
cpu_allocation_ratio = 8
initial_cpu_allocation_ratio = 2
compute_monitors = cpu.virt_driver
update_resources_interval = 30
[compute]
provider_config_location = /etc/nova/config
resource_provider_association_refresh = 0
sharing_providers_max_uuids_per_request = 50
""")
    agent, conf = result.settings.agent, f"{tmp_path}/nova.conf"
    assert (agent.reserved_host_memory_mb, agent.terms.cpu_allocation_ratio, agent.compute_monitors) == (
        1024,
        8.0,
        ("cpu.virt_driver",),
    )
    assert agent.terms.initial_cpu_allocation_ratio == 2.0
    assert agent.provider_config_location == "/etc/nova/config"
    assert (agent.resource_provider_association_refresh, agent.sharing_providers_max_uuids_per_request) == (0.0, 50)
    assert (agent.update_s, result.sources["agent", "update_s"]) == (30.0, f"{conf}:6")
    assert result.settings.tables["DEFAULT"]["cpu_allocation_ratio"] == 8.0
    assert result.sources["agent", "provider_config_location"] == f"{conf}:8"
    assert result.notes == ()


@pytest.mark.parametrize(("interval", "update_s"), [("-1", 0.0), ("-0.5", 0.0), ("0", 60.0), ("90", 90.0)])
def test_negative_update_interval_disables_updates_and_zero_is_default(read, interval, update_s):
    assert read(f"[DEFAULT]\nupdate_resources_interval = {interval}\n").settings.agent.update_s == update_s


def test_provider_config_location_defaults_to_the_path_of_nova(read, tmp_path):
    result = read("[DEFAULT]\n")
    place = "agent", "provider_config_location"
    assert result.settings.agent.provider_config_location == "/etc/nova/provider_config/"
    assert result.sources == {place: f"{tmp_path}/nova.conf, by default"}
    toml = '[agent]\nprovider_config_location = "/etc/own"\n'
    result = read("[DEFAULT]\n", toml)
    assert (result.settings.agent.provider_config_location, result.sources) == (
        "/etc/own",
        {place: f"{tmp_path}/roost.toml:2"},
    )
    result = read("[compute]\nprovider_config_location = /etc/mine\n", toml)
    assert result.settings.agent.provider_config_location == "/etc/mine"


def test_devices_in_placement_come_from_the_section_pci(read):
    result = read("""[pci]
report_in_placement = true
device_spec = {"vendor_id": "10de", "traits": "big"}
device_spec = [{"address": "*:81:00.*"}, {"vendor_id": "8086"}]
alias = {"name": "gpu", "vendor_id": "10de", "product_id": "1db6"}
""")
    agent = result.settings.agent
    assert agent.pci_in_placement
    assert [each.vendor_id for each in agent.device_specs] == ["10de", "*", "8086"]
    assert result.notes == ()
    with pytest.raises(BadSettings, match=r"nova.conf:3: pci.device_spec: entry is invalid: devname is not supported"):
        read('[pci]\nreport_in_placement = true\ndevice_spec = {"devname": "eth0"}\n')


def test_device_specs_are_read_only_with_pci_in_placement():
    assert Agent(device_spec=("anything",)).device_specs == ()
    with pytest.raises(ValueError, match="device_spec entry is not JSON"):
        Agent(device_spec=("anything",), pci_in_placement=True)


def test_conductor_settings_do_not_come_from_the_section_conductor(read, tmp_path):
    result = read("""[DEFAULT]
shelved_offload_time = -1
[compute]
consecutive_build_service_disable_threshold = 3
[conductor]
workers = 4
build_timeout_s = many
consecutive_build_service_disable_threshold = 7
""")
    conductor = result.settings.conductor
    assert (conductor.shelved_offload_time_s, conductor.consecutive_build_service_disable_threshold) == (-1.0, 3)
    assert conductor.build_timeout_s == 600.0
    assert result.sources["conductor", "shelved_offload_time_s"] == f"{tmp_path}/nova.conf:2"
    assert result.notes == (f"{tmp_path}/nova.conf: these sections have no effect: conductor",)


def test_options_without_effect_are_reported(read, tmp_path):
    result = read("""[DEFAULT]
transport_url = rabbit://
state_path = /var/lib/nova
scheduler_host_manager = x
[filter_scheduler]
ram_weight_multiplyer = 1
track_instance_changes = true
[scheduler]
workers = 4
[database]
connection = mysql://
[placement]
auth_type = password
[neutron]
auth_type = password
[glance]
auth_type = password
[compute]
shutdown_retry_interval = 10
""")
    conf, near = f"{tmp_path}/nova.conf", "the nearest known name is ram_weight_multiplier"
    assert list(result.notes) == [
        f"{conf}:4: [DEFAULT] scheduler_host_manager has no effect: Roost has only one host manager",
        f"{conf}:6: [filter_scheduler] ram_weight_multiplyer has no effect: {near}",
        f"{conf}:7: [filter_scheduler] track_instance_changes has no effect: the instances of a host are always known",
        f"{conf}:9: [scheduler] workers has no effect: start several processes, on PostgreSQL or MariaDB",
        f"{conf}:19: [compute] shutdown_retry_interval has no effect: Roost does not need it",
        f"{conf}: these options of [DEFAULT] have no effect: state_path",
        f"{conf}: these sections have no effect: glance",
    ]
    assert result.settings == default_settings()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[DEFAULT]\nscheduler_max_attempts = x", "DEFAULT.scheduler_max_attempts: must be a whole number, got 'x'"),
        ("[metrics]\nrequired = maybe", "metrics.required: must be true or false, got 'maybe'"),
        ("[metrics]\nweight_multiplier =", "metrics.weight_multiplier: must be a number, got ''"),
        ("[DEFAULT]\nshelved_offload_time = x", "DEFAULT.shelved_offload_time: must be a number, got 'x'"),
        ("[DEFAULT]\nshelved_offload_time = -2", "DEFAULT.shelved_offload_time: must be -1, 0 or more, got -2"),
        ("[scheduler]\nmax_attempts = 0", "scheduler.max_attempts: must be 1 or more, got 0"),
        ("[scheduler]\ndriver = fake_scheduler", "scheduler.driver: must be one of nova.scheduler.filter_scheduler"),
        ("[DEFAULT]\nscheduler_driver = $kind", "[DEFAULT] scheduler_driver refers to $kind, which is not set"),
        ("[filter_scheduler]\nram_weight_multiplier = nan", "filter_scheduler.ram_weight_multiplier: must be a finite"),
        ("[filter_scheduler]\nenabled_filters = A, B", "filter_scheduler.enabled_filters: Scheduler Host Filter A, B"),
        ("[filter_scheduler]\nweight_classes = nova.x.Y", "filter_scheduler.weight_classes: nova.x.Y cannot be"),
        ("\nnonsense", "is neither OPTION = VALUE nor [SECTION]"),
    ],
)
def test_a_bad_value_is_named_with_file_line_option_and_value(read, tmp_path, text, problem):
    with pytest.raises(BadSettings) as caught:
        read(text)
    assert str(caught.value).startswith(f"{tmp_path}/nova.conf:2: {problem}")


def test_lenient_read_collects_every_problem(read):
    toml = """[scheduler]
claim_rounds = 0
max_placement_results = "a"
bogus = 1
[metricks]
[filter_scheduler]
host_subset_size = 0
"""
    result = read("[scheduler]\nmax_attempts = x\ndriver = y\n[metrics]\nrequired = z\n", toml, is_lenient=True)
    problems = " | ".join(map(str, result.problems))
    wanted = (
        "max_attempts",
        "driver",
        "required",
        "claim_rounds",
        "max_placement_results",
        "bogus",
        "metricks",
        "subset",
    )
    assert [name for name in wanted if name not in problems] == []
    assert len(result.problems) == len(wanted)
    assert result.settings == default_settings()


def test_unreadable_file_is_named(tmp_path):
    with pytest.raises(BadSettings, match="nowhere: cannot be read"):
        read_nova_conf(tmp_path / "nowhere")
