import json

import pytest

from roost.errors import BadFile
from roost.simulator.report import ClassUse, RefusedReason, ReplayReport, json_file, to_json, to_text

REPORT = ReplayReport(
    workload="pods",
    notes=("one VCPU is 1/1000 of a core",),
    hosts=1_523,
    providers=7_735,
    requests=8_152,
    placed=8_000,
    refused=152,
    instances_placed=8_000,
    instances_alive=35,
    refused_reasons=[RefusedReason(reason=f"lack thing {n}", count=40 - n, example="") for n in range(12)],
    decision_us_p50=181.6,
    decision_us_p99=1_402.2,
    decisions_per_s=5_120.4,
    work_s=1.592,
    install_s=0.25,
    classes=[
        ClassUse(
            resource_class="VCPU",
            capacity=107_018_000,
            used=1_000,
            peak=53_509_000,
            typical=8_000,
            stranded_share=0.125,
        ),
        ClassUse(resource_class="PGPU", capacity=12, used=0, peak=0, typical=None, stranded_share=None),
    ],
    gpu_fragmentation=0.0457,
)

TEXT = """\
replay of pods
  (one VCPU is 1/1000 of a core)

  hosts                  1,523  7,735 providers, installed in 0.25 s
  requests               8,152
  placed                 8,000  98.1%
  refused                  152  1.9%
  instances placed       8,000  35 alive at the end
  decision p50          182 µs  search and rank, before the commit
  decision p99        1,402 µs
  decisions a second     5,120  durable, 1.59 s in all
  GPU fragmentation       4.6%  of all GPUs, free but expected to be of no use

refused
  40  lack thing 0
  39  lack thing 1
  38  lack thing 2
  37  lack thing 3
  36  lack thing 4
  35  lack thing 5
  34  lack thing 6
  33  lack thing 7
  32  lack thing 8
  31  lack thing 9
  59  for 2 other reasons

  class     capacity  used at the end              peak         free, stranded  below
  VCPU   107,018,000            1,000  0.0%  53,509,000  50.0%           12.5%  8,000
  PGPU            12                0  0.0%           0   0.0%               -      -
"""


def test_the_text_is_aligned_and_says_the_most_common_reasons():
    assert to_text(REPORT) == TEXT


def test_the_json_holds_everything():
    decoded = json.loads(to_json(REPORT))
    assert decoded["placed"] == 8_000
    assert len(decoded["refused_reasons"]) == 12
    assert decoded["classes"][0]["stranded_share"] == 0.125


def test_a_report_that_cannot_be_written_is_a_named_error(tmp_path):
    with pytest.raises(BadFile, match="cannot be written"), json_file(str(tmp_path / "absent" / "report.json")):
        pytest.fail("the replay must not begin")
    with pytest.raises(BadFile, match="Is a directory"), json_file(str(tmp_path)):
        pytest.fail("the replay must not begin")


def test_a_report_takes_the_place_of_an_older_one_only_when_it_is_whole(tmp_path):
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
