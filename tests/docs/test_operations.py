"""The operations reference matches the step tables."""

from tests.docs.documents import ROOT
from tests.docs.operation_tables import page


def test_operations_reference_is_generated_from_the_tables(request):
    file, text = ROOT / "docs" / "conductor-steps.md", page()
    if request.config.getoption("--golden-rewrite"):
        file.write_text(text, encoding="utf-8")
    assert file.read_text(encoding="utf-8") == text, "`make golden` writes docs/conductor-steps.md"
