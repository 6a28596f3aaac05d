import pytest

from roost.compute.drivers.fake.script import Child, FakeNode, Script, read_script
from roost.errors import BadFile

CELLS = """\
layout = "numa"
[[node]]
cell = [{id = 0, memory_mb = 100, cpus = [0, 1]}, {id = 1, memory_mb = 50, cpus = [2]}]
"""


def script_path(tmp_path, text):
    path = tmp_path / "script.toml"
    path.write_text(text)
    return str(path)


def test_an_empty_script_is_one_plain_node(tmp_path):
    script = read_script(script_path(tmp_path, ""))
    assert script == Script()
    (node,) = script.node
    assert (node.on("h").name, node.vcpu_total, node.memory_total_mb, node.local_gb) == ("h", 16, 65536, 500)


def test_node_with_cells_has_their_cpus_and_memory(tmp_path):
    (node,) = read_script(script_path(tmp_path, CELLS)).node
    assert (node.vcpu_total, node.memory_total_mb, len(node.topology.cells)) == (3, 150, 2)
    same = FakeNode(vcpus=3, memory_mb=150, cell=node.cell)
    assert (same.vcpu_total, same.memory_total_mb) == (3, 150)


def test_names_expand_the_host_and_node_placeholders():
    node = FakeNode(name="{host}-bm", provider=(Child(name="{node}-child", parent="{host}-x"),)).on("h")
    assert (node.name, node.provider) == ("h-bm", (Child(name="h-bm-child", parent="h-x"),))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("layout = ", "is not TOML: Invalid value"),
        ('layout = "wide"', "layout: Invalid enum value 'wide'"),
        ("nodes = 3", "Object contains unknown field nodes"),
        ("[[node]]\nvcpus = -1", "node[0].vcpus: Expected int >= 0"),
        ("[[node]]\n[[node]]", "two nodes have the name '{host}'"),
        ("[[node]]\ninventories = {CUSTOM_a = {total = 1}}", "'CUSTOM_a' is not a resource class"),
        ("[[node]]\ninventories = {FPGA = {total = 0}}", "total must be 1.."),
        ("[[node]]\ninventories = {VCPU = {total = 1}}", "inventories must not name VCPU"),
        ("[[node]]\npieces = {VCPU = ['a']}", "pieces must not name VCPU"),
        ("[[node]]\npieces = {FPGA = ['a']}\ninventories = {FPGA = {total = 1}}", "pieces must not name FPGA"),
        ("[[node]]\npieces = {FPGA = ['a'], CUSTOM_B = ['a']}", "two pieces have the name 'a'"),
        ("[[node]]\npieces = {X = ['a']}", "'X' is not a resource class"),
        ('[[node]]\ntraits = ["FAST"]', "'FAST' is not a trait"),
        ('[[node]]\ngpu = [{name = "a", vgpus = 1, traits = ["FAST"]}]', "'FAST' is not a trait"),
        ('[[node]]\ngpu = [{name = "a", vgpus = 1, resource_class = "X"}]', "'X' is not a resource class"),
        ('[[node]]\ngpu = [{name = "a", vgpus = 1}, {name = "a", vgpus = 1}]', "two GPUs have the name 'a'"),
        ('[[node]]\nprovider = [{name = "a"}, {name = "a"}]', "two providers have the name 'a'"),
        ('[[node]]\nprovider = [{name = "a", inventories = {X = {total = 1}}}]', "'X' is not a resource class"),
        ("[[node]]\ncell = [{id = 0, memory_mb = 1}, {id = 0, memory_mb = 1}]", "two NUMA cells have the same number"),
        (CELLS + "vcpus = 4", "vcpus must be 3, the sum of its cells, or be left out, got 4"),
        (CELLS + "memory_mb = 4", "memory_mb must be 150, the sum of its cells, or be left out, got 4"),
        ('layout = "numa"', "layout numa needs cells, and node {host} has none"),
        (
            CELLS + 'pci = [{address = "0000:06:00.1", vendor_id = "8086", product_id = "1", dev_type = "type-VF"}]',
            "in layout numa a virtual function needs a cell of its node, 0000:06:00.1 has none",
        ),
        ("renames = {CUSTOM_A = 'fast'}", "'fast' is not a resource class"),
        ("renames = {CUSTOM_A = 'FPGA', CUSTOM_B = 'FPGA'}", "two classes are renamed to 'FPGA'"),
        (
            "renames = {CUSTOM_A = 'FPGA'}\n[[node]]\ninventories = {FPGA = {total = 1}}",
            "a class is renamed to FPGA, which node {host} has already",
        ),
        ("[[fault]]\naction = 'sleep'", "fault[0].action: Invalid enum value 'sleep'"),
        ("[[fault]]\naction = 'spawn'\nkind = 'late'", "fault[0].kind: Invalid enum value 'late'"),
        ("[[fault]]\naction = 'spawn'\nshare = 2", "fault[0].share: Expected float <= 1"),
        ("[[fault]]\nshare = 0.5", "missing required field action"),
    ],
)
def test_invalid_script_is_refused_by_path(tmp_path, text, problem):
    path = script_path(tmp_path, text)
    with pytest.raises(BadFile) as error:
        read_script(path)
    assert str(error.value).startswith(f"{path}: ")
    assert problem in str(error.value)


def test_unreadable_script_is_named_in_the_error(tmp_path):
    with pytest.raises(BadFile, match=r"none[.]toml: cannot be read: .*No such file"):
        read_script(str(tmp_path / "none.toml"))
    (tmp_path / "bytes.toml").write_bytes(b"\xff")
    with pytest.raises(BadFile, match=r"bytes[.]toml: cannot be read"):
        read_script(str(tmp_path / "bytes.toml"))
