from roost.cli.text.replay_text import to_text
from tests.unit.simulator.reports import REPORT

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
  GPU fragmentation       4.6%  of all GPUs, free but unusable for expected requests

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

  class     capacity  used at the end              peak         free in pieces  below
  VCPU   107,018,000            1,000  0.0%  53,509,000  50.0%           12.5%  8,000
  PGPU            12                0  0.0%           0   0.0%               -      -
"""


def test_replay_text_is_aligned_and_lists_the_most_common_reasons():
    assert to_text(REPORT) == TEXT
