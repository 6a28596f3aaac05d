import json

import pytest

from roost.errors import BadFile
from roost.simulator.report import json_file, to_json
from tests.unit.simulator.reports import REPORT


def test_json_has_the_fields_of_the_report():
    decoded = json.loads(to_json(REPORT))
    assert decoded["placed"] == 8_000
    assert len(decoded["refused_reasons"]) == 12
    assert decoded["classes"][0]["stranded_share"] == 0.125


def test_unwritable_report_is_an_error_before_the_replay(tmp_path):
    with pytest.raises(BadFile, match="cannot be written"), json_file(str(tmp_path / "absent" / "report.json")):
        pytest.fail("the replay must not begin")
    with pytest.raises(BadFile, match="Is a directory"), json_file(str(tmp_path)):
        pytest.fail("the replay must not begin")


def test_report_replaces_an_older_one_only_when_complete(tmp_path):
    path = tmp_path / "report.json"
    path.write_text("older")
    with pytest.raises(KeyboardInterrupt), json_file(str(path)):
        raise KeyboardInterrupt
    assert [each.name for each in tmp_path.iterdir()] == ["report.json"]
    assert path.read_text() == "older"
    with json_file(str(path)) as write:
        write(REPORT)
    assert path.read_bytes() == to_json(REPORT)
    with json_file("/dev/null") as write:
        write(REPORT)
