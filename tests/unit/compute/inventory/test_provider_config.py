import pytest

from roost.compute.inventory.provider_config import ProviderConfig, ProviderConfigs, read
from roost.errors import BadSettings
from roost.model.provider import Inventory
from tests.support.fleets.provider_trees import provider_tree, tree_content
from tests.support.fleets.worlds import uuid_named

HOST = uuid_named("host")
META = "meta: {schema_version: '1.0'}\n"
WHOLE = f"""\
{META}
providers:
  - identification: {{name: host}}
    inventories:
      additional:
        - CUSTOM_FPGA: {{total: 4, reserved: 1, min_unit: 1, max_unit: 2, step_size: 1, allocation_ratio: 1.5}}
        - CUSTOM_A: {{total: 7}}
          CUSTOM_B: {{total: 8}}
    traits:
      additional: [CUSTOM_FAST, CUSTOM_NEAR]
  - identification: {{uuid: $COMPUTE_NODE}}
    traits: {{additional: [CUSTOM_PLAIN]}}
  - identification: {{uuid: {HOST.upper().replace("-", "")}}}
"""


def config_folder(tmp_path, **files):
    for name, text in files.items():
        (tmp_path / f"{name}.yaml").write_text(text)
    return str(tmp_path)


def entry(identification="{name: host}", rest=""):
    return f"{META}providers:\n  - identification: {identification}\n{rest}"


def test_file_is_read_in_full(tmp_path):
    folder = config_folder(tmp_path, site=WHOLE)
    path = f"{folder}/site.yaml"
    assert read(folder) == [
        ProviderConfig(
            provider="host",
            inventories={
                "CUSTOM_FPGA": Inventory(total=4, reserved=1, max_unit=2, allocation_ratio=1.5),
                "CUSTOM_A": Inventory(total=7),
                "CUSTOM_B": Inventory(total=8),
            },
            traits=frozenset({"CUSTOM_FAST", "CUSTOM_NEAR"}),
            path=path,
        ),
        ProviderConfig(provider="$COMPUTE_NODE", traits=frozenset({"CUSTOM_PLAIN"}), path=path),
        ProviderConfig(provider=HOST, path=path),
    ]


def test_yaml_files_are_read_by_name_and_other_files_ignored(tmp_path):
    folder = config_folder(tmp_path, b=entry("{name: b}"), a=entry("{name: a}"))
    (tmp_path / "c.yml").write_text("{")
    (tmp_path / ".d.yaml").write_text("{")
    assert [each.provider for each in read(folder)] == ["a", "b"]


def test_missing_or_empty_folder_adds_nothing(tmp_path, monkeypatch):
    assert (read(str(tmp_path / "none")), read(str(tmp_path))) == ([], [])
    monkeypatch.chdir(config_folder(tmp_path, site=WHOLE))
    assert read("") == []


def test_unreadable_folder_is_named_in_the_error(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(BadSettings, match="file: cannot be read: Not a directory"):
        read(str(tmp_path / "file"))


@pytest.mark.parametrize("version", ["1.0", "1.1", "1.99"])
def test_schema_versions_1_x_are_read(tmp_path, version):
    assert read(config_folder(tmp_path, site=entry().replace("1.0", version)))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("", "Expected object, got null"),
        ("- a", "Expected object, got array"),
        ("a: [", "is not YAML: line 1: "),
        ("meta: !!python/object:os.system {}", "is not YAML: line 1: could not determine a constructor"),
        ("meta: 2001-99-99", "is not YAML: month must be in 1..12"),
        (META, "missing required field providers"),
        ("providers: [{identification: {name: a}}]", "missing required field meta"),
        (META + "providers: []", "providers: Expected array of length >= 1"),
        (entry() + "other: 1", "Object contains unknown field other"),
        ("meta: {}\nproviders: []", "meta: Object missing required field schema_version"),
        (entry().replace("'1.0'", "1.0"), "meta.schema_version: Expected str, got float"),
        (entry().replace("1.0", "2.0"), "meta.schema_version must be 1.x, got '2.0'"),
        (entry().replace("1.0", "1"), "meta.schema_version must be 1.x, got '1'"),
        (META + "providers:\n  - traits: {additional: []}", "missing required field identification"),
        (entry("{}"), "providers[0].identification must have uuid or name, one of them"),
        (entry(f"{{name: host, uuid: {HOST}}}"), "providers[0].identification must have uuid or name, one of them"),
        (entry("{uuid: host}"), "providers[0].identification.uuid must be a uuid or $COMPUTE_NODE, got 'host'"),
        (entry("{uuid: $compute_node}"), "must be a uuid or $COMPUTE_NODE, got '$compute_node'"),
        (entry("{name: ''}"), "providers[0].identification.name: Expected str of length >= 1"),
        (entry("{name: 7}"), "providers[0].identification.name: Expected str"),
        (entry("{host: a}"), "unknown field host"),
        (entry(rest="    inventory: {}"), "providers[0]: Object contains unknown field inventory"),
        (entry(rest="    inventories: {extra: []}"), "providers[0].inventories: Object contains unknown field extra"),
        (entry(rest="    inventories: {additional: {CUSTOM_A: {total: 1}}}"), "additional: Expected array, got object"),
        (
            entry(rest="    inventories: {additional: [{VCPU: {total: 1}}]}"),
            "providers[0].inventories.additional: names must be CUSTOM_ and A-Z, 0-9 or _, got 'VCPU'",
        ),
        (entry(rest="    inventories: {additional: [{CUSTOM_a: {total: 1}}]}"), "got 'CUSTOM_a'"),
        (
            entry(rest="    inventories: {additional: [{CUSTOM_A: {}}]}"),
            "CUSTOM_A: Object missing required field total",
        ),
        (
            entry(rest="    inventories: {additional: [{CUSTOM_A: {total: 0}}]}"),
            "CUSTOM_A: total must be 1..2147483647",
        ),
        (
            entry(rest="    inventories: {additional: [{CUSTOM_A: {total: 2, reserved: 3}}]}"),
            "CUSTOM_A: reserved must be 0..2, got 3",
        ),
        (entry(rest="    inventories: {additional: [{CUSTOM_A: {total: 1.5}}]}"), "CUSTOM_A: total: Expected int"),
        (entry(rest="    inventories: {additional: [{CUSTOM_A: {total: 1, ratio: 2}}]}"), "unknown field ratio"),
        (entry(rest="    inventories: {additional: [{CUSTOM_A: 4}]}"), "Expected object, got int"),
        (
            entry(rest="    inventories: {additional: [{CUSTOM_A: {total: 1}}, {CUSTOM_A: {total: 2}}]}"),
            "providers[0].inventories.additional: CUSTOM_A is there twice",
        ),
        (
            entry(rest="    traits: {additional: [HW_CPU_X86_AVX2]}"),
            "providers[0].traits.additional: names must be CUSTOM_ and A-Z, 0-9 or _, got 'HW_CPU_X86",
        ),
        (entry(rest="    traits: {additional: [1]}"), "providers[0].traits.additional[0]: Expected str, got int"),
    ],
)
def test_invalid_file_is_refused_by_path(tmp_path, text, problem):
    folder = config_folder(tmp_path, site=text)
    with pytest.raises(BadSettings) as error:
        read(folder)
    assert str(error.value).startswith(f"{folder}/site.yaml: ")
    assert problem in str(error.value)


def test_unreadable_file_is_named_in_the_error(tmp_path):
    (tmp_path / "folder.yaml").mkdir()
    with pytest.raises(BadSettings, match=r"folder[.]yaml: cannot be read: Is a directory"):
        read(str(tmp_path))
    (tmp_path / "folder.yaml").rmdir()
    (tmp_path / "bytes.yaml").write_bytes(b"\xff")
    with pytest.raises(BadSettings, match=r"bytes[.]yaml: cannot be read: it is not UTF-8"):
        read(str(tmp_path))
    with pytest.raises(BadSettings, match=r"bytes[.]yaml: cannot be read: Not a directory"):
        read(str(tmp_path / "bytes.yaml"))


@pytest.mark.parametrize("identification", ["{name: host}", "{uuid: $COMPUTE_NODE}", f"{{uuid: {HOST}}}"])
def test_duplicate_entries_of_a_provider_are_refused(tmp_path, identification):
    folder = config_folder(tmp_path, a=entry(identification), b=entry(identification))
    with pytest.raises(BadSettings, match=r"b[.]yaml: provider '\S+' has an entry in \S+a[.]yaml already"):
        read(folder)


# --- merging into a tree ---


def config(provider="host", inventories=None, traits=(), path="site.yaml"):
    return ProviderConfig(
        provider=provider,
        traits=frozenset(traits),
        path=path,
        inventories={name: Inventory(total=total) for name, total in (inventories or {}).items()},
    )


def merge_warnings(tree, *configs):
    """Merge entries into a tree; return the warnings."""
    warnings = []
    ProviderConfigs(configs, warn=warnings.append).merge(tree)
    return warnings


def test_merge_adds_inventories_and_traits():
    tree = provider_tree()
    assert merge_warnings(tree, config(inventories={"CUSTOM_FPGA": 4}, traits=["CUSTOM_FAST", "CUSTOM_A"])) == []
    data = tree.data("host")
    assert set(data.inventory) == {"VCPU", "CUSTOM_FPGA"}
    assert (data.inventory["CUSTOM_FPGA"]["total"], data.inventory["CUSTOM_FPGA"]["allocation_ratio"]) == (4, 1.0)
    assert data.traits == {"CUSTOM_A", "CUSTOM_B", "CUSTOM_FAST", "OWNER_NOVA"}
    assert tree.data("pool") == provider_tree().data("pool")


def test_entry_can_name_a_provider_by_uuid():
    tree = provider_tree()
    merge_warnings(tree, config(uuid_named("cell0"), traits=["CUSTOM_FAST"]))
    assert tree.has_traits("cell0", ["CUSTOM_FAST", "OWNER_NOVA"])


def test_merging_again_changes_nothing():
    tree = provider_tree()
    entry_to_add = config(inventories={"CUSTOM_FPGA": 4}, traits=["CUSTOM_FAST"])
    merge_warnings(tree, entry_to_add)
    before = tree_content(tree)
    merge_warnings(tree, entry_to_add)
    assert tree_content(tree) == before


def test_default_entry_applies_to_compute_nodes_without_their_own():
    tree = provider_tree()
    tree.new_root("other", uuid_named("other"))
    tree.new_root("third", uuid_named("third"))
    for name in ("host", "cell0", "other", "third"):
        tree.add_traits(name, "COMPUTE_NODE")
    merge_warnings(
        tree,
        config("$COMPUTE_NODE", traits=["CUSTOM_PLAIN"]),
        config("other", traits=["CUSTOM_FAST"]),
        config(uuid_named("third")),
    )
    traits = {
        name: {"CUSTOM_PLAIN", "CUSTOM_FAST", "OWNER_NOVA"} & tree.data(name).traits
        for name in ("host", "cell0", "pool", "other", "third")
    }
    assert traits == {
        "host": {"CUSTOM_PLAIN", "OWNER_NOVA"},
        "cell0": set(),
        "pool": set(),
        "other": {"CUSTOM_FAST", "OWNER_NOVA"},
        "third": {"OWNER_NOVA"},
    }


def test_missing_provider_is_warned_about_once():
    tree, warnings = provider_tree(), []
    configs = ProviderConfigs([config("nobody"), config("$COMPUTE_NODE")], warn=warnings.append)
    before = tree_content(tree)
    for _ in range(3):
        configs.merge(tree)
    assert warnings == ["site.yaml: there is no provider 'nobody', so its entry is ignored"]
    assert tree_content(tree) == before


@pytest.mark.parametrize(
    ("configs", "problem"),
    [
        ([config(inventories={"VCPU": 8})], "site.yaml: provider 'host' has inventory of VCPU already"),
        ([config(traits=["HW_CPU_X86_AVX2"])], "site.yaml: provider 'host' has the trait HW_CPU_X86_AVX2 already"),
        (
            [config(), config(HOST, path="b.yaml")],
            f"site.yaml and b.yaml have entries of one provider, 'host' and '{HOST}'",
        ),
        ([config("pool"), config("twice")], "several providers are named 'twice'"),
    ],
)
def test_conflict_with_the_tree_is_refused_and_merges_nothing(configs, problem):
    tree = provider_tree()
    tree.add_traits("host", "HW_CPU_X86_AVX2")
    for parent in ("host", "pool"):
        tree.new_child("twice", parent, uuid_named(f"twice {parent}"))
    before = tree_content(tree)
    with pytest.raises(ValueError) as error:
        merge_warnings(tree, config("cell1", traits=["CUSTOM_FAST"]), *configs)
    assert problem in str(error.value)
    assert tree_content(tree) == before
