"""The rules of accessibility that tests of the dashboard run in a page."""

from tests.support.fleets.products import ROOT

AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"
