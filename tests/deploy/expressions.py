"""The expressions of the board and of the alerts, and the metrics and labels that they name."""

import json
import re
from pathlib import Path
from typing import NamedTuple

import yaml

from roost.observe import exposition
from roost.observe.families import FAMILIES, Family

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy" / "prometheus" / "roost-alerts.yml"
BOARD = ROOT / "deploy" / "grafana" / "roost.json"
assert exposition.MODULES, "the modules with declarations are imported"
FAMILY_OF_SAMPLE: dict[str, Family] = {name: family for family in FAMILIES.values() for name in family.sample_names}
# Labels that Prometheus adds, or histograms have.
_OTHER_LABELS = frozenset({"job", "instance", "le"})
_VARIABLES = {"$__rate_interval": "1m", "$job": "roost", "$zone": ".*"}
_SELECTOR = re.compile(r"\b(roost_\w+|up)\b\s*(\{[^}]*\})?")
_MATCHER = re.compile(r"(\w+)\s*(?:=~|!~|!=|=)\s*\"")
_GROUPING = re.compile(r"\b(?:by|on|without|ignoring|group_left|group_right)\s*\(([^)]*)\)")


class Expression(NamedTuple):
    """An expression, and where it is."""

    place: str
    text: str
    template: str  # a text with {{label}}

    @property
    def selectors(self) -> list[tuple[str, str]]:
        """Metric and matchers of each selector."""
        return [(match[1], match[2] or "") for match in _SELECTOR.finditer(self.text)]

    def unknown_names(self) -> list[str]:
        """Return the metrics and labels that do not exist, with the reason."""
        problems = []
        known = set(_OTHER_LABELS)
        for metric, matchers in self.selectors:
            family = FAMILY_OF_SAMPLE.get(metric)
            own = {"job", "instance"} | ({label.name for label in family.labels} if family else set())
            if family is None and metric != "up":
                problems.append(f"{metric} is not a metric")
            problems += [f"{metric} has no label {name}" for name in _MATCHER.findall(matchers) if name not in own]
            known |= own
        used = {name.strip() for names in _GROUPING.findall(self.text) for name in names.split(",") if name.strip()}
        used |= set(re.findall(r"\{\{\s*(?:\$labels\.)?(\w+)\s*\}\}", self.template))
        problems += [f"no metric has the label {name}" for name in sorted(used - known)]
        return problems


def alerts() -> list[Expression]:
    """Return the expressions of the alerts."""
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return [
        Expression(rule["alert"], rule["expr"].strip(), rule["annotations"]["summary"])
        for group in groups
        for rule in group["rules"]
    ]


def panels() -> list[Expression]:
    """Return the expressions of the board, with values for its variables."""
    found = []
    for panel in json.loads(BOARD.read_text())["panels"]:
        for target in panel.get("targets", ()):
            text = target["expr"]
            for name, value in _VARIABLES.items():
                text = text.replace(name, value)
            found.append(Expression(f"{panel['title']} {target['refId']}", text, target["legendFormat"]))
    return found
