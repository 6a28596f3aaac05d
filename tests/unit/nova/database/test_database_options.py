"""Options of Nova's databases in nova.conf."""

import pytest

from roost.compat.ini import read_ini
from roost.errors import BadSettings
from roost.nova.database.database_options import DatabaseOptions, read_database_options

CONF = """
[DEFAULT]
transport_url = rabbit://nova:secret@mq/
service_down_time = 90
report_interval = 5
[api_database]
connection = mysql+pymysql://nova:secret@db/nova_api?charset=utf8
[database]
connection = mysql+pymysql://nova:secret@db/nova_cell0
"""


def read(tmp_path, text):
    path = tmp_path / "nova.conf"
    path.write_text(text)
    return read_database_options(read_ini(path))


def test_options_are_read_and_not_shown(tmp_path):
    options = read(tmp_path, CONF)
    assert options == DatabaseOptions(
        api_connection="mysql+pymysql://nova:secret@db/nova_api?charset=utf8",
        connection="mysql+pymysql://nova:secret@db/nova_cell0",
        transport_url="rabbit://nova:secret@mq/",
        service_down_time_s=90,
        report_interval_s=5,
    )
    assert "secret" not in f"{options} {options!r}"
    assert "service_down_time_s=90" in repr(options)


def test_defaults_are_those_of_nova(tmp_path):
    options = read(tmp_path, "[api_database]\nconnection = sqlite:////a\n")
    assert options == DatabaseOptions(api_connection="sqlite:////a")
    assert (options.service_down_time_s, options.report_interval_s, options.timeout_s) == (60, 10, 10)


def test_api_database_is_required(tmp_path):
    with pytest.raises(BadSettings, match=r"nova.conf: \[api_database\] connection: is not set"):
        read(tmp_path, "[database]\nconnection = sqlite:////a\n")


@pytest.mark.parametrize("value", ["0", "-1", "1.5", "soon", ""])
def test_times_are_whole_seconds(tmp_path, value):
    with pytest.raises(BadSettings, match=r"nova.conf: \[DEFAULT\] service_down_time: must be a whole number"):
        read(tmp_path, f"[DEFAULT]\nservice_down_time = {value}\n[api_database]\nconnection = x\n")
