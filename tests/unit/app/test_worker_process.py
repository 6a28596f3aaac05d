"""The configuration of a worker survives the way from its parent, also from an older version."""

import msgspec
import pytest

from roost.app.placement_server import resolve_server_config
from roost.app.worker_process import pack, unpack
from roost.model.settings.placement_settings import Placement

SETTINGS = r"""
[filter_scheduler]
ram_weight_multiplier = -1.5

[placement]
queue_max = 77

[pci]
alias = ["{\"name\": \"gpu\", \"vendor_id\": \"10de\", \"product_id\": \"1234\"}"]
"""


@pytest.fixture
def config(tmp_path):
    path = tmp_path / "roost.toml"
    path.write_text(SETTINGS)
    return resolve_server_config(path, tmp_path, {}, overrides={"uri_max_bytes": 4000})


def test_unpacked_configuration_equals_the_packed_one(config):
    assert config.settings.placement.queue_max == 77
    assert config.sources["placement", "uri_max_bytes"] == "command line"
    assert unpack(pack(config)) == config


def test_settings_unknown_to_an_older_parent_have_their_defaults(config):
    plain = msgspec.msgpack.decode(pack(config))
    for part in ("settings", "file_settings"):
        del plain[part]["placement"]["requests_max"], plain[part]["monitoring"]
    settings = unpack(msgspec.msgpack.encode(plain)).settings
    assert (settings.placement.queue_max, settings.placement.requests_max) == (77, Placement().requests_max)
    assert settings.monitoring == config.settings.monitoring
