"""A host whose journal is lost: its agent is given a new one, which has the nodes that the server knows."""

from collections.abc import Mapping
from pathlib import Path

from roost.compute.agent.agent_journal import Journal
from roost.errors import Conflict


def adopt(path: Path, nodes: Mapping[str, str]) -> None:
    """Write the uuids of nodes into a journal, a new one or one that knows nothing else.

    Args:
        path: of the file.
        nodes: uuids of their root providers, by name.

    Raises:
        Conflict: the journal is not lost: it knows orders, or what guests have.
        JournalLost: the file cannot be read or written, or an agent uses it.
    """
    journal = Journal(path)
    try:
        if journal.entries() or journal.held() or journal.paused():
            raise Conflict(f"the journal {path} knows orders or guests: it is not lost, so start the agent with it")
        for node in journal.node_uuids().keys() - nodes.keys():
            journal.forget_node(node)
        for node, uuid in nodes.items():
            journal.keep_node(node, uuid)
    finally:
        journal.close()
