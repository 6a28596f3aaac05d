import subprocess
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_make_without_a_target_prints_every_target(golden):
    # MAKEFLAGS of an outer `make -j` would add a warning to the output.
    result = subprocess.run(
        ["make"], cwd=ROOT, env={"PATH": "/usr/bin:/bin"}, capture_output=True, text=True, check=True
    )
    golden("make.txt", result.stdout)
