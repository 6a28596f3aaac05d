"""The tags of operations in the OpenAPI document: one per noun."""

from collections.abc import Mapping

# Name and description, in the order of pages.
TAGS: Mapping[str, str] = {
    "decisions": "Choose hosts and claim their resources; explain and replay stored decisions.",
    "capacity": "Count how many more instances fit.",
    "plans": "Plan moves of instances.",
    "instances": "Instances that Roost runs on hosts with agents, and claims of other systems.",
    "operations": "Work on instances and hosts in the background, with its progress.",
    "migrations": "Moves of instances between hosts, with the resources that they hold.",
    "hosts": "Hosts and their services: resources, usage, and whether they accept instances.",
    "aggregates": "Sets of hosts with metadata, and availability zones.",
    "flavors": "Stored flavors, which requests can name.",
    "images": "Stored images, which requests can name.",
    "groups": "Server groups: instances that share hosts, or avoid each other.",
    "fleet": "The whole fleet: its state in numbers, its export, and the check of its database.",
    "settings": "The settings in force, and the enabled rules.",
    "changes": "Who changed what, and when.",
    "events": "Notifications of decisions, instances and changes.",
    "sessions": "Sessions of browsers, and the permissions of a client.",
    "agents": "The protocol of agents: registration, reports and orders.",
}
# First segments of paths that have the tag of another noun.
_OTHERS: Mapping[str, str] = {
    "explanations": "decisions",
    "refusals": "decisions",
    "comparisons": "decisions",
    "services": "hosts",
    "zones": "aggregates",
    "status": "fleet",
    "history": "fleet",
    "audit": "fleet",
    "session": "sessions",
    "orders": "agents",
}


def tag_of(path: str) -> str:
    """Return the tag of a path in the table of routes.

    >>> tag_of("/services/{host}")
    'hosts'
    """
    noun = path.split("/")[1]
    return _OTHERS.get(noun, noun)
