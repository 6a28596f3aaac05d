"""A new journal, with the nodes that the server knows, for an agent that lost its journal."""

from collections.abc import Mapping
from pathlib import Path

from roost.compute.agent.agent_journal import Journal
from roost.errors import Conflict


def adopt(path: Path, nodes: Mapping[str, str]) -> None:
    """Write the uuids of nodes into a journal that is new or has only nodes.

    Args:
        path: the journal file.
        nodes: uuids of the root providers, by node name.

    Raises:
        Conflict: the journal is in use: it has orders, or resources of guests.
        JournalLost: the file cannot be read or written, or an agent has it open.
    """
    journal = Journal(path)
    try:
        if journal.entries() or journal.holders() or journal.list_paused():
            raise Conflict(f"the journal {path} has orders or guests: it is not lost, so start the agent with it")
        for node in journal.node_uuids().keys() - nodes.keys():
            journal.forget_node(node)
        for node, uuid in nodes.items():
            journal.keep_node(node, uuid)
    finally:
        journal.close()
