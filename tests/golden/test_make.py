import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_bare_make_prints_every_target(golden):
    # MAKEFLAGS of a surrounding `make -j` would add a warning to the text.
    printed = subprocess.run(
        ["make"], cwd=ROOT, env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=True
    )
    golden("make.txt", printed.stdout)
