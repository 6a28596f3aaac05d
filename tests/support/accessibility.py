"""Violations of accessibility rules on a page, by axe."""

from tests.support.fleets.products import ROOT

_AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"


def find_violations(page):
    """Return the violations of a page: the rule, its advice, and the first elements."""
    page.evaluate(_AXE.read_text(encoding="utf-8"))
    violations = page.evaluate("axe.run().then((result) => result.violations)")
    return {each["id"]: (each["help"], [node["html"][:200] for node in each["nodes"][:3]]) for each in violations}
