"""The board and the alerts name only metrics and labels that exist; this needs no Prometheus."""

import re

import pytest

from roost.observe.families import FAMILIES
from tests.deploy.expressions import ROOT, Expression, alerts, panels

DOCUMENT = (ROOT / "docs" / "monitoring.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("expression", [*alerts(), *panels()], ids=lambda expression: expression.place)
def test_expression_names_only_existing_metrics_and_labels(expression):
    assert expression.selectors
    assert expression.unknown_names() == []


@pytest.mark.parametrize(
    ("text", "template", "problem"),
    [
        ("rate(roost_wrong_total[5m])", "", "roost_wrong_total is not a metric"),
        ('roost_hosts{status="up"}', "", "roost_hosts has no label status"),
        ("sum by (host) (roost_hosts)", "", "no metric has the label host"),
        ("roost_hosts", "{{host}}", "no metric has the label host"),
    ],
)
def test_wrong_name_in_an_expression_is_found(text, template, problem):
    assert problem in Expression("here", text, template).unknown_names()


@pytest.mark.parametrize("expression", alerts(), ids=lambda expression: expression.place)
def test_each_alert_is_described_with_a_remedy(expression):
    section = re.search(rf"^#### {expression.place}\n(.*?)(?=^###|\Z)", DOCUMENT, re.DOTALL | re.MULTILINE)
    assert section, f"docs/monitoring.md does not describe {expression.place}"
    assert len(section[1].split()) > 15


def test_board_shows_each_area_of_the_product():
    shown = {metric for expression in panels() for metric, _ in expression.selectors}
    areas = {family.area for family in FAMILIES.values() if shown & set(family.sample_names)}
    assert areas >= {"requests", "thread", "decisions", "operations", "agents", "fleet", "database"}
