"""State that all parts of a simulation share: time, chance, faults, and data that outlives a process."""

import random
from collections import Counter
from typing import Literal

from roost.conductor.operation.events import Transition
from roost.model.names import uuid_text
from roost.model.work.work_rows import AgentRow, StatusRow
from roost.simulator.cluster.environment.event_queue import EventQueue
from roost.simulator.cluster.environment.guest_shelf import GuestShelf
from roost.simulator.cluster.environment.rare_faults import RareFaults
from roost.simulator.cluster.environment.restored_backup import RestoredBackup
from roost.simulator.cluster.environment.trouble import FaultInjector
from roost.simulator.cluster.environment.troubled_store import TroubledStore
from roost.simulator.seeded_random import SeededRandom


class Environment:
    """The shared state of one simulation, without its servers and hosts.

    Args:
        seed: determines all random choices.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.chance = random.Random(seed)
        self.identities = SeededRandom(seed)
        self.events = EventQueue()
        self.clock = self.events.clock
        self.faults = FaultInjector(random.Random(seed + 1))
        self.rare = RareFaults(seed, counts=self.faults.counts, is_over=lambda: self.faults.is_over)
        self.shelf = GuestShelf()
        self.store = TroubledStore()
        self.accepted_counts: Counter[str] = Counter()  # by kind of operation
        self.excuse_counts: Counter[str] = Counter()
        self.transitions: Counter[Transition] = Counter()  # of operations
        self.commits = 0  # attempts, including failed ones
        self.cut_until_s: dict[str, float] = {}  # by host
        self.lost_guests: set[str] = set()  # uuids of guests that a host has lost
        self.restored = RestoredBackup()  # the effects of a restored backup

    def new_uuid(self) -> str:
        """Return the next uuid of the seed."""
        return uuid_text(self.identities.uuids(1)[0])

    def is_cut_off(self, host: str) -> bool:
        """Return whether a host is partitioned from all servers now."""
        return self.cut_until_s.get(host, 0.0) > self.clock.time_s

    def is_down(self, host: str) -> bool:
        """Return whether the agent of a host has left, or was declared gone."""
        agent = self.store.tables.work[AgentRow].get(host)
        return agent is not None and agent.state == "gone"

    def excuse(self, reason: str) -> Literal[True]:
        """Count one use of an excuse; return True."""
        self.excuse_counts[reason] += 1
        return True

    def statuses(self) -> list[StatusRow]:
        """Return the statuses of all instances, in the order of their requests."""
        rows = self.store.tables.work[StatusRow].rows.values()
        return sorted(rows, key=lambda row: row.id)

    def document(self, number: int) -> bytes:
        """Return a stored document."""
        body = self.store.document(number)
        assert body is not None, "documents are never deleted"
        return body
