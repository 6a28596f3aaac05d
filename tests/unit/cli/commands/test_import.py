"""The text of ``roost import``."""

from roost import app
from roost.compat.upstream.import_run import ImportCounts, ImportReport
from roost.compat.upstream.verify import ImportCheck


def test_names_of_the_source_cannot_send_control_sequences_to_the_terminal(run, monkeypatch):
    counts = ImportCounts(created=0, changed=0, removed=0, same=0, ahead=0)
    check = ImportCheck(counts=[], classes=[], differing=["provider \x1b[2J differs from the source"])
    report = ImportReport(source="a", is_dry_run=False, providers=counts, consumers=counts, verified=check)
    monkeypatch.setattr(app, "import_placement", lambda *_, **__: report)
    code, output, _ = run("import", "placement", "--from", "http://127.0.0.1:1", "--database", "new.db")
    assert code == 8
    assert "provider \\x1b[2J differs from the source\n" in output
