"""The metric reference, generated from the declarations of metric families."""

from collections.abc import Iterator

from roost.observe import exposition
from roost.observe.families import AREAS, FAMILIES, Family
from tests.docs.documents import ROOT

PAGE = ROOT / "docs" / "monitoring.md"
BEGIN, END = "<!-- metrics: begin -->", "<!-- metrics: end -->"
assert exposition.MODULES, "the modules with declarations are imported"


def reference() -> str:
    """Return the tables of all families, one per area."""
    lines: list[str] = []
    for area, text in AREAS.items():
        families = [family for family in FAMILIES.values() if family.area == area]
        lines += [f"### Metrics of {area}", "", text, "", "| metric | type | meaning |", "|---|---|---|"]
        lines += [f"| `{family.name}` | {family.kind} | {family.text} |" for family in families]
        lines += ["", *_labels(families)]
    return "\n".join(lines)


def _labels(families: list[Family]) -> Iterator[str]:
    """Yield a table of the labels and their bounds, if there are any."""
    owners: dict[tuple[str, str], list[str]] = {}
    for family in families:
        for label in family.labels:
            owners.setdefault((label.name, label.bound), []).append(f"`{family.name}`")
    if owners:
        yield from ("| label | of | values |", "|---|---|---|")
        yield from (f"| `{name}` | {', '.join(names)} | {bound} |" for (name, bound), names in owners.items())
        yield ""


def page() -> str:
    """Return the document with the current tables."""
    text = PAGE.read_text(encoding="utf-8")
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{reference()}\n{END}{after}"
