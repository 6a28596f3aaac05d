import os

from roost.observe.fleet_metrics import HOSTS, USED
from roost.observe.survey_board import SurveyBoard, sample

UP = sample(HOSTS, "up", "east", value=3)
DOWN = sample(HOSTS, "down", "east", value=1)
MEMORY = sample(USED, "MEMORY_MB", "east", value=512)


def values(board):
    return {(each.name, *each.labels.values()): each.value for metric in board.collect() for each in metric.samples}


def test_survey_replaces_only_its_own_samples():
    board = SurveyBoard()
    board.publish("fleet", [UP, DOWN])
    board.publish("database", [MEMORY])
    board.publish("fleet", [UP])
    assert values(board) == {("roost_hosts", "up", "east"): 3, ("roost_fleet_used", "MEMORY_MB", "east"): 512}
    assert not board.is_recent("fleet", age_s=60)  # Without a folder, only this process surveys.


def test_processes_share_samples_in_a_folder(tmp_path):
    writer, reader = SurveyBoard(tmp_path), SurveyBoard(tmp_path)
    assert not reader.is_recent("fleet", age_s=60)
    writer.publish("fleet", [UP, DOWN])
    assert values(reader) == values(writer) != {}
    assert reader.is_recent("fleet", age_s=60)
    os.utime(tmp_path / "fleet.survey", (0, 0))
    assert not reader.is_recent("fleet", age_s=60)


def test_damaged_file_is_skipped(tmp_path):
    board = SurveyBoard(tmp_path)
    board.publish("fleet", [UP])
    (tmp_path / "database.survey").write_text("[")
    assert values(board) == {("roost_hosts", "up", "east"): 3}


def test_missing_folder_does_not_stop_the_process(tmp_path):
    SurveyBoard(tmp_path / "gone").publish("fleet", [UP])
