"""The text of ``roost import``."""

import json

from roost import app
from roost.compat.upstream.import_run import ImportCounts, ImportReport
from roost.compat.upstream.placement_world import World
from roost.compat.upstream.verify import ImportCheck
from tests.support.servers import upstream_database as upstream


def test_target_without_options_is_the_default_and_is_shown(run, monkeypatch, tmp_path):
    monkeypatch.setenv("ROOST_DATA", str(tmp_path / "data"))
    source = f"sqlite:///{tmp_path / 'placement.sqlite'}"
    upstream.fill(source, World(providers={}, consumers={}, classes=[], traits=[]))
    target = tmp_path / "data" / "roost.db"
    for options in (["--dry-run"], []):
        code, output, error = run("import", "placement", "--from", source, *options)
        assert (code, output.splitlines()[:2]) == (0, [f"from {source} to {target}", ""]), error
    code, output, _ = run("import", "placement", "--from", source, "--json")
    assert (code, json.loads(output)["database"], target.exists()) == (0, str(target), True)


def test_names_of_the_source_cannot_send_control_sequences_to_the_terminal(run, monkeypatch):
    counts = ImportCounts(created=0, changed=0, removed=0, same=0, ahead=0)
    check = ImportCheck(counts=[], classes=[], differing=["provider \x1b[2J differs from the source"])
    report = ImportReport(
        source="a", database="b", is_dry_run=False, providers=counts, consumers=counts, verified=check
    )
    monkeypatch.setattr(app, "import_placement", lambda *_, **__: report)
    code, output, _ = run("import", "placement", "--from", "http://127.0.0.1:1", "--database", "new.db")
    assert code == 8
    assert "provider \\x1b[2J differs from the source\n" in output
