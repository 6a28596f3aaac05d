"""The metric reference matches the declarations."""

from tests.docs.metric_reference import PAGE, page


def test_metric_reference_is_generated_from_the_declarations(request):
    text = page()
    if request.config.getoption("--golden-rewrite"):
        PAGE.write_text(text, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == text, "`make golden` writes the tables of docs/monitoring.md"
