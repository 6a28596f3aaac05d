"""The configuration files of the cloud: every address is a loopback address or a socket in the folder."""

import configparser
import re
from pathlib import Path

import pytest

from tests.bed import conf_files
from tests.bed.conf_files import SERVICES, Places

PORTS = {name: 5000 + number for number, name in enumerate(SERVICES)}


def places(folder: Path = Path("/bed"), placement_path: str = "") -> Places:
    """Return places with known ports."""
    return Places(
        folder_path=str(folder),
        ports=PORTS,
        placement_path=placement_path,
        broker_url="rabbit://guest:guest@127.0.0.1:5671/",
        socket=f"{folder}/mariadb/socket",
    )


def parse(text: str) -> configparser.RawConfigParser:
    """Read a file as the services do."""
    found = configparser.RawConfigParser(default_section="no section")
    found.read_string(text)
    return found


@pytest.mark.parametrize(
    "sections",
    [conf_files.keystone, conf_files.glance, conf_files.placement, conf_files.nova],
    ids=lambda f: f.__name__,
)
def test_file_names_no_address_but_loopback(sections):
    text = conf_files.render(sections(places()))
    assert set(re.findall(r"(?:https?|rabbit)://(?:\w+:\w+@)?([\w.]+)", text)) <= {"127.0.0.1"}
    assert set(re.findall(r"unix_socket=([^&\s]+)", text)) == {"/bed/mariadb/socket"}


def test_nova_logs_in_to_keystone_for_placement():
    found = parse(conf_files.render(conf_files.nova(places())))
    assert found["placement"]["auth_url"] == f"http://127.0.0.1:{PORTS['keystone']}/v3"
    assert found["filter_scheduler"]["enabled_filters"].split(",") == list(conf_files.FILTERS)


def test_endpoint_of_placement_has_the_path_of_its_server():
    assert places(placement_path="/placement").url("placement").endswith(f":{PORTS['placement']}/placement")
    assert places().url("nova").endswith(f":{PORTS['nova']}/v2.1")


def test_files_of_all_services_are_written(tmp_path):
    paste = tmp_path / "paste"
    for name in ("nova/api-paste.ini", "glance/glance-api-paste.ini"):
        (paste / name).parent.mkdir(parents=True)
        (paste / name).write_text("[pipeline]\n")
    folder = tmp_path / "bed"
    folder.mkdir()
    conf_files.write(places(folder), paste)
    assert {str(path.relative_to(folder / "etc")) for path in (folder / "etc").rglob("*.*")} == {
        "keystone/keystone.conf",
        "glance/glance-api.conf",
        "glance/glance-api-paste.ini",
        "placement/placement.conf",
        "nova/nova.conf",
        "nova/api-paste.ini",
        "nova/cmp1.conf",
        "nova/cmp2.conf",
        "nova/cmp3.conf",
    }
    gold = {path.parts[-3] for path in folder.glob("nova/*/providers/gold.yaml")}
    assert gold == set(conf_files.GOLD_HOSTS)
    assert (folder / "nova/cmp1/compute_id").read_text().strip() == conf_files.node_uuid("cmp1")
