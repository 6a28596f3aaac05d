import re
from pathlib import Path
from typing import get_args

import msgspec
import pytest

from roost.compute.drivers.fake.options import FakeOptions
from roost.compute.drivers.fake.script import Action, Child, FakeNode, Fault, Gpu, Kind, Script
from roost.compute.drivers.libvirt.options import LibvirtTexts
from roost.model.work.agent_terms import PciDevice
from tests.docs.documents import blocks
from tests.support.agents.libvirt_hosts import libvirt_module

PAGE = (Path(__file__).parents[2] / "docs" / "driver-reference.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", [FakeOptions, LibvirtTexts, Script, FakeNode, Gpu, Child, PciDevice, Fault])
def test_driver_options_and_script_fields_are_documented(kind):
    documented = set(re.findall(r"`(?:\[\[)?(?:node[.])?(\w+)(?:\]\])?`", PAGE))
    assert [each.name for each in msgspec.structs.fields(kind) if each.name not in documented] == []


def test_injectable_faults_are_documented():
    assert [choice for choice in (*get_args(Action), *get_args(Kind)) if f"`{choice}`" not in PAGE] == []


def test_libvirt_example_runs(tmp_path, monkeypatch):
    libvirt_module()
    monkeypatch.chdir(tmp_path)
    ((_, code),) = blocks(PAGE, "python libvirt")
    exec(compile(code, "driver-reference.md", "exec"), {})
