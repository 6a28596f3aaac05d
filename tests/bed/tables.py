"""The results as text."""

from collections.abc import Iterable, Mapping, Sequence

from tests.bed.compare import Difference, count_reasons
from tests.bed.loads import MEANINGS
from tests.bed.records import Record
from tests.bed.rounds import BOOTS, ROOM
from tests.bed.scenario import DECIDERS

_TEXT_MAX = 300


def render(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table with columns of equal width; numbers are on the right."""
    cells = [[*header], *([_cell(value) for value in row] for row in rows)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(header))]
    is_number = [all(_is_number(row[column]) for row in cells[1:]) and len(cells) > 1 for column in range(len(header))]
    lines = [
        "  ".join(
            cell.rjust(width) if right else cell.ljust(width)
            for cell, width, right in zip(row, widths, is_number, strict=True)
        ).rstrip()
        for row in cells
    ]
    return "\n".join(lines)


def _cell(value: object) -> str:
    return f"{value:.1f}" if isinstance(value, float) else str(value)


def _is_number(text: str) -> bool:
    return text.replace(".", "", 1).replace(",", "").isdigit() or text == "-"


def durations(records: Sequence[Record]) -> str:
    """Return the seconds of each operation in each cloud."""
    names = list(dict.fromkeys(name for record in records for name in record.durations_s))
    rows: list[list[object]] = [[name, *(record.durations_s.get(name, "-") for record in records)] for name in names]
    rows.append(["all operations", *(sum(record.durations_s.values()) for record in records)])
    rows.append(["start", *(record.start_s for record in records)])
    return render(["seconds", *(record.combination.name for record in records)], rows)


def cpu_seconds(records: Sequence[Record]) -> str:
    """Return the processor seconds of Placement and schedulers in each cloud."""
    names = [name for name in DECIDERS if any(name in record.cpu_s for record in records)]
    rows: list[list[object]] = [[name, *(record.cpu_s.get(name, "-") for record in records)] for name in names]
    rows.append(["together", *(float(sum(record.cpu_s.values())) for record in records)])
    return render(["processor seconds", *(record.combination.name for record in records)], rows)


def rounds(records: Sequence[Record]) -> str:
    """Return the granted boots of each round."""
    rows = [[record.combination.name, ", ".join(map(str, record.rounds))] for record in records if record.rounds]
    return render([f"{BOOTS} boots for {ROOM}", "granted in each round"], rows)


def verdicts(differences: Mapping[str, Sequence[Difference]], observations: int) -> str:
    """Return the numbers of differences from the reference, by cloud."""
    rows = []
    for name, found in differences.items():
        kinds = [each.kind for each in found]
        rows.append([name, observations, kinds.count("other"), kinds.count("meant"), kinds.count("host")])
    return render(["cloud", "observations", "differences", "meant", "other hosts"], rows)


def reasons(differences: Mapping[str, Sequence[Difference]]) -> str:
    """Return the numbers of different choices of hosts, by reason."""
    rows = [
        [name, reason, count, MEANINGS[reason]]
        for name, found in differences.items()
        for reason, count in sorted(count_reasons(found).items())
    ]
    return render(["cloud", "other hosts because of", "choices", "meaning"], rows)


def describe_difference(difference: Difference) -> str:
    """Return a difference in a few lines."""
    title = f"{difference.operation} / {difference.label} / {difference.part}"
    values = [f"    {name}: {_short(value)}" for name, value in _values(difference)]
    return "\n".join([f"{title}: {difference.reason}" if difference.reason else title, *values])


def _values(difference: Difference) -> list[tuple[str, object]]:
    return [("reference", difference.reference), ("subject", difference.subject)]


def _short(value: object) -> str:
    text = str(value)
    return text if len(text) <= _TEXT_MAX else f"{text[: _TEXT_MAX - 1]}…"
