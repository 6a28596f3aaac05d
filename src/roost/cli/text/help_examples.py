"""The examples in help texts, by command."""

import click

_EXAMPLES = {
    "agent": (
        "roost agent --server https://roost-1:8780 --driver libvirt",
        "roost agent --server http://127.0.0.1:8780 --driver fake --fleet 3",
    ),
    "aggregate create": ("roost aggregate create rack-7 --zone east",),
    "aggregate set": ("roost aggregate set rack-7 --join host-7 --join host-8",),
    "audit": ("roost audit --data /var/lib/roost", "roost audit --url https://roost-1:8780"),
    "capacity": (
        "roost capacity --flavor large --by host",
        "roost capacity --flavor vcpus=4,memory_mb=8192 --by zone",
        "roost capacity --known-flavors",
    ),
    "change list": ("roost change list --object host-12", "roost change list --user ops -o csv"),
    "config check": ("roost config check --config /etc/roost/roost.toml",),
    "config show": ("roost config show --section scheduler",),
    "db backup": ("roost db backup --data /var/lib/roost /backup/roost.jsonl.gz",),
    "decide": ("roost decide --fleet fleet.json --request request.json",),
    "decision list": ("roost decision list --refused --since 24h",),
    "flavor set": ("roost flavor set large --vcpus 8 --memory-mb 16384",),
    "group create": ("roost group create web --policy anti-affinity",),
    "host drain": ("roost host drain host-7", "roost host drain --aggregate rack-7 --dry-run"),
    "host list": ("roost host list --zone east", "roost host list --down --json"),
    "host set": ("roost host set host-7 --disable --reason 'new memory'",),
    "instance create": (
        "roost instance create web --flavor small --count 3 --wait",
        "roost instance create web --flavor vcpus=2,memory_mb=2048 --dry-run",
    ),
    "instance list": ("roost instance list --host host-7", "roost instance list --status ERROR"),
    "lab fgd": (
        "roost lab fgd nodes.csv pods.csv --seeds 42..51",
        "roost lab fgd nodes.csv pods.csv --policy fgd --policy bestfit --results runs --plot plots",
    ),
    "login": ("roost login --profile prod --url https://roost-1:8780",),
    "nova-scheduler": (
        "roost nova-scheduler --check --nova-conf /etc/nova/nova.conf",
        "roost nova-scheduler --nova-conf /etc/nova/nova.conf --conf /etc/placement/placement.conf",
        "roost nova-scheduler --nova-conf /etc/nova/nova.conf --placement catalog",
    ),
    "operation list": ("roost operation list --failed",),
    "plan apply": (
        "roost plan apply plan.json --dry-run",
        "roost plan apply plan.json --at-once 4 --deadline 3600",
        "roost plan apply plan.json --window 22:00-06:00 --window sat,sun@00:00-24:00",
    ),
    "plan balance": ("roost plan balance --class MEMORY_MB --moves 20",),
    "plan consolidate": ("roost plan consolidate --hosts 3", "roost plan consolidate --share 10 --zone east"),
    "plan drain": ("roost plan drain host-7", "roost plan drain --rack r1 --extra 10 --json > plan.json"),
    "plan make-room": ("roost plan make-room last-refused", "roost plan make-room --flavor large --zone east"),
    "replay": (
        "roost replay --generate --data trial",
        "roost replay trace.csv --config pack.toml --config spread.toml --seeds 5",
    ),
    "status": ("roost status --watch 5",),
    "up": ("roost up --data /var/lib/roost", "roost up --config /etc/roost/roost.toml --listen 0.0.0.0:8780"),
    "why": ("roost why web", "roost why last-refused --data trial", "roost why --summary --since 24h"),
}


def add_examples(name: str, command: click.Command) -> None:
    """Append its examples to the help of a command and of its subcommands.

    Args:
        name: the words of the command, without ``roost``.
    """
    examples = _EXAMPLES.get(name, ())
    if examples:
        command.epilog = "\n".join(["\b", "Examples:", *(f"  $ {line}" for line in examples)])
    if isinstance(command, click.Group):
        for word, subcommand in command.commands.items():
            add_examples(f"{name} {word}", subcommand)
