"""The pictures of the documents: the processes, the way of a request, a build, and the data."""

from tests.docs.documents import ROOT
from tests.docs.drawing import Drawing, terminal

_PIPELINE = (
    ("shape", "compile the rules,", "cache the result"),
    ("feasible", "free resources,", "traits, aggregates"),
    ("filters", "reject hosts,", "each with a reason"),
    ("weighers", "give scores,", "order the hosts"),
    ("pick", "the best host;", "claim in memory"),
)
_LANES = ("client", "server: API", "conductor", "deciding thread", "database", "agent")
# From lane, to lane, text. A step within one lane is a note.
_BUILD = (
    (0, 1, "POST /v1/instances"),
    (1, 4, "commit: operation, status BUILD"),
    (1, 0, "202: operation"),
    (4, 2, "due operation"),
    (2, 3, "request"),
    (3, 3, "filters, weighers"),
    (3, 4, "commit: claim, evidence, order"),
    (5, 1, "poll: the order of this host"),
    (5, 5, "the driver builds"),
    (5, 1, "reply: done"),
    (1, 4, "commit: reply; the operation is due"),
    (4, 2, "due operation"),
    (2, 4, "commit: status ACTIVE, event"),
    (1, 0, "event, or the end of --wait"),
)


def pictures() -> dict[str, str]:
    """Return all pictures by the names of their files. The terminal shows the golden file of the demo's test."""
    return {
        "processes.svg": _processes(),
        "decision.svg": _decision(),
        "build.svg": _build(),
        "data.svg": _data(),
        "why.svg": _why(),
    }


def _processes() -> str:
    drawing = Drawing(
        960,
        606,
        title="The processes of Roost",
        description="Clients and agents connect to servers, also through a load balancer. Servers and conductors "
        "connect to one database. Agents run guests on their hosts.",
    )
    drawing.box((24, 24), (200, 70), "plain", "OpenStack services", "Placement API")
    drawing.box((248, 24), (200, 70), "plain", "programs and people", "/v1, roost instance …")
    drawing.box((472, 24), (150, 70), "plain", "monitoring", "/metrics, /healthz")
    drawing.area((646, 24), (290, 118), "host", "each host")
    drawing.box((662, 54), (112, 72), "part", "roost agent", "one per host")
    drawing.box((808, 54), (112, 72), "plain", "guests", "libvirt, QEMU")
    drawing.arrow((774, 90), (806, 90))
    drawing.box((24, 176), (912, 44), "plain", "load balancer", "optional; any for HTTP works")
    for x in (124, 348, 547):
        drawing.arrow((x, 94), (x, 174))
    drawing.arrow((718, 126), (718, 174))
    drawing.text((728, 162), "reports, polls for orders")
    for x, title in ((24, "roost up, on one machine"), (356, "roost up, on another machine")):
        drawing.area((x, 262), (308, 168), "roost", title)
        drawing.box((x + 8, 294), (292, 34), "part", "event loop: HTTP, fast reads")
        drawing.box((x + 8, 336), (292, 34), "part", "deciding thread: claims, columns")
        drawing.box((x + 8, 378), (292, 34), "part", "conductor: operations, jobs")
        drawing.arrow((x + 154, 220), (x + 154, 260))
        drawing.arrow((x + 154, 430), (x + 154, 480))
    drawing.area((688, 262), (248, 168), "roost", "roost conductor")
    drawing.box((702, 336), (220, 76), "part", "conductor of cells", "optional: instead of those", "inside the servers")
    drawing.arrow((812, 430), (812, 480))
    drawing.box((24, 482), (912, 64), "data", "database", "one SQLite file for one process, or one PostgreSQL")
    drawing.text((36, 568), "Each arrow starts at the side that opens the connection.")
    drawing.text(
        (36, 586), "All processes of a kind are equal; each reads the changes of the others from the database."
    )
    return drawing.svg()


def _decision() -> str:
    drawing = Drawing(
        960,
        300,
        title="The way of a request",
        description="A request passes shape, feasible, filters, weighers and pick, and is flushed to the database. "
        "A refused commit leads back to the start.",
    )
    drawing.box((20, 70), (100, 64), "plain", "request")
    drawing.area((136, 30), (804, 150), "roost", "deciding thread: columns of the whole fleet, in memory")
    for number, texts in enumerate(_PIPELINE):
        x = 150 + 158 * number
        drawing.box((x, 64), (146, 78), "part", *texts)
        drawing.arrow((x - 30 if number == 0 else x - 12, 103), (x - 2, 103))
    drawing.text((840, 166), "Each rule counts the hosts that it rejects, as evidence.", "note", "end")
    drawing.box((560, 226), (222, 54), "data", "commit in the database", "claim and evidence, or nothing")
    drawing.arrow((855, 142), (855, 253), (784, 253))
    drawing.box((290, 226), (210, 54), "plain", "decision", "hosts, alternates, why")
    drawing.arrow((560, 253), (502, 253))
    drawing.arrow((671, 226), (671, 200), (223, 200), (223, 144), kind="back")
    drawing.text((236, 216), "lost a race: read the changes, decide again")
    return drawing.svg()


def _build() -> str:
    top, step = 70, 38
    height = top + step * (len(_BUILD) + 1)
    drawing = Drawing(
        960,
        height,
        title="The way of a build",
        description="; ".join(f"{_LANES[source]} to {_LANES[to]}: {text}" for source, to, text in _BUILD),
    )
    middles = [92 + 155 * number for number in range(len(_LANES))]
    kinds = ("plain", "roost", "roost", "roost", "data", "host")
    for middle, lane, kind in zip(middles, _LANES, kinds, strict=True):
        drawing.line((middle, 56), (middle, height - 16))
        drawing.box((middle - 68, 20), (136, 36), kind, lane)
    for number, (source, to, text) in enumerate(_BUILD, 1):
        y = top + step * number - 8
        if source == to:
            drawing.box((middles[source] - 76, y - 20), (152, 28), "part", text)
            continue
        drawing.arrow((middles[source], y), (middles[to], y))
        left = min(middles[source], middles[to])
        drawing.text((left + 8, y - 6), text, "note label")
    return drawing.svg()


def _data() -> str:
    drawing = Drawing(
        960,
        470,
        title="The data of Roost",
        description="Providers offer inventories; consumers hold allocations of them; a decision explains a claim; "
        "an operation changes an instance through orders to agents.",
    )
    drawing.area((20, 20), (280, 350), "area", "what the fleet offers")
    drawing.box((40, 56), (240, 52), "data", "provider", "a tree per host: NUMA nodes, GPUs")
    drawing.box((40, 134), (240, 52), "data", "inventory", "total, reserved, allocation ratio")
    drawing.box((40, 212), (240, 52), "data", "traits, aggregates", "capabilities, zones")
    drawing.box((40, 290), (240, 52), "data", "facts of hosts", "state, metrics, NUMA topology")
    drawing.area((340, 20), (280, 350), "area", "what is claimed, and why")
    drawing.box((360, 56), (240, 52), "data", "consumer", "an instance, or a migration")
    drawing.box((360, 134), (240, 52), "data", "allocation", "amount of a class on a provider")
    drawing.box((360, 212), (240, 52), "data", "decision", "hosts, alternates, evidence")
    drawing.box((360, 290), (240, 52), "data", "server group", "policy, members, slots")
    drawing.area((660, 20), (280, 350), "area", "work on instances")
    drawing.box((680, 56), (240, 52), "data", "status", "of an instance")
    drawing.box((680, 134), (240, 52), "data", "operation", "kind, step, due time")
    drawing.box((680, 212), (240, 52), "data", "order", "to an agent, then its reply")
    drawing.box((680, 290), (240, 52), "data", "event", "a line of the story")
    drawing.arrow((160, 134), (160, 110))
    drawing.arrow((360, 160), (282, 160))
    drawing.arrow((480, 134), (480, 110))
    drawing.arrow((480, 212), (480, 188))
    drawing.arrow((680, 82), (602, 82))
    drawing.arrow((800, 134), (800, 110))
    drawing.arrow((800, 212), (800, 188))
    drawing.arrow((920, 316), (930, 316), (930, 160), (922, 160))
    drawing.box(
        (20, 394), (600, 56), "plain", "feed", "each commit of this data; processes keep it in memory, as columns"
    )
    drawing.box((660, 394), (280, 56), "plain", "no feed", "read from the database when it is due")
    drawing.arrow((160, 370), (160, 392))
    drawing.arrow((480, 370), (480, 392))
    drawing.arrow((800, 370), (800, 392))
    return drawing.svg()


def _why() -> str:
    output = (ROOT / "tests" / "golden" / "files" / "why.txt").read_text(encoding="utf-8")
    return terminal(f"$ roost why last-refused --data /tmp/roost-demo-1\n{output}")
