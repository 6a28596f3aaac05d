"""The demo with its defaults: its report, and the explanation that it proposes as the next command."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.docs.documents import ROOT, blocks
from tests.support.fleets.products import environ_with_program

FILES = Path(__file__).parent / "files"
# Values of one run, and the text in their places.
_MASKS = {
    r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}": "01a1f3c0-0000-7000-8000-000000000001",
    r"20\d\d-\d\d-\d\d \d\d:\d\d:\d\dZ": "2026-01-31 12:00:00Z",
    r"[\d.]+ s(?=[ .]|$)": "0.00 s",
    r" +[\d,]+ µs": "      0 µs",
    r"(?<=decisions a second) +[\d,]+": "      0",
    r"\S*roost-demo-\w+": "/tmp/roost-demo-1",
    # The widest figure, often a duration, makes the others of its column wide.
    r"^(  [a-z][a-z 0-9_]*?) {2,}(?=\d)": r"\1  ",
}


def mask(text):
    """Return an output without the values of one run."""
    for pattern, value in _MASKS.items():
        text = re.sub(pattern, value, text, flags=re.MULTILINE)
    return text


@pytest.mark.long
def test_demo_fills_its_fleet_and_leads_to_an_explanation(tmp_path, golden):
    here = environ_with_program(tmp_path, TMPDIR=str(tmp_path))
    run = subprocess.run(["roost", "demo"], cwd=tmp_path, env=here, capture_output=True, text=True, check=True)
    golden("demo.txt", mask(run.stdout))
    assert run.stderr.splitlines()[-1] == "requests: 3,000 of 3,000"
    memory = re.search(r"MEMORY_MB +[\d,]+ +[\d,]+ +([\d.]+)%", run.stdout)
    assert float(memory[1]) > 80
    commands, _, browser = run.stdout.partition("Try next:\n")[2].partition("See it in a browser, at ")
    assert browser.startswith("http://127.0.0.1:8780/ui/, with:\n")
    texts = [
        subprocess.run(shlex.split(line), cwd=tmp_path, env=here, capture_output=True, text=True, check=True).stdout
        for line in commands.splitlines()
    ]
    golden("why.txt", mask(texts[0]))
    assert "more fit" in texts[1]
    assert texts[2].splitlines()[-1].startswith("host-00099 ")


def test_readme_shows_lines_of_the_real_output():
    real = (FILES / "demo.txt").read_text(encoding="utf-8").splitlines()
    (block,) = [text for _, text in blocks((ROOT / "README.md").read_text(encoding="utf-8"), "text demo")]
    assert [line for line in mask(block).splitlines() if line not in real] == []
