"""The world of one simulation: its servers, hosts and groups, and the operators who change hosts."""

from collections.abc import Callable
from uuid import UUID

from roost.errors import Conflict, NotFound, RoostError
from roost.fleet.host_writes import ServiceChange, apply_service_change, rows_of_service, writes_of_service
from roost.model.fleet import Fleet
from roost.model.group import GROUP_POLICIES, ServerGroup
from roost.model.host import HostFacts, HostSpec
from roost.model.provider import Inventory, ProviderSpec
from roost.placement.current import Current
from roost.placement.write_plan import Plan
from roost.simulator.cluster.environment.restored_backup import compare_backup
from roost.simulator.cluster.environment.troubled_store import Backup
from roost.simulator.cluster.machines import Machine
from roost.simulator.cluster.network import Call
from roost.simulator.cluster.processes import Process, Servers

_POLICIES = sorted(GROUP_POLICIES)
_RACKS = ("", "left", "left", "right", "right")


class World(Servers):
    """Servers, 3 to 6 hosts, and a server group of each policy."""

    def __init__(self, seed: int) -> None:
        super().__init__(seed)
        self.groups = [self.new_uuid() for _ in _POLICIES]
        self.machines = [
            Machine(self, f"h{number}", self.new_uuid(), rack=self.chance.choice(_RACKS))
            for number in range(self.chance.randint(3, 6))
        ]

    def fleet(self) -> Fleet:
        """Return the providers, hosts and groups to create at the start."""
        providers = [
            ProviderSpec(
                uuid=each.uuid,
                name=each.host,
                inventories={
                    "VCPU": Inventory(total=self.chance.randint(3, 9)),
                    "MEMORY_MB": Inventory(total=100 - number),
                },
            )
            for number, each in enumerate(self.machines)
        ]
        hosts = [
            HostSpec(provider_uuid=each.uuid, host=each.host, node=each.host, facts=HostFacts(rack=each.rack))
            for each in self.machines
        ]
        groups = [
            ServerGroup(uuid=uuid, name=policy, policy=policy, max_server_per_host=self.chance.choice((1, 1, 2)))
            for uuid, policy in zip(self.groups, _POLICIES, strict=True)
        ]
        return Fleet(providers=providers, hosts=hosts, groups=groups)

    def send_request(
        self, name: str, action: Callable[[Process], object], *, on_accepted: Callable[[], None] = lambda: None
    ) -> None:
        """Send a user's request until a server answers; note a refusal in the trace.

        Args:
            name: its name in the trace.
            action: the server's work; may run more than once.
            on_accepted: called once, when the server accepts.
        """
        restores = self.restored.count
        Call(
            self,
            "",
            name,
            action=action,
            on_reply=lambda _answer: on_accepted(),
            on_error=self._note_refusal,
            # A restored database would accept the same request again.
            is_wanted=lambda: self.restored.count == restores,
        )

    def send_request_later(self, after_s: float, name: str, action: Callable[[Process], object]) -> None:
        """Send a user's request after a while."""
        self.events.schedule(after_s, "ask later", lambda: self.send_request(name, action), detail=name)

    def disable(self, host: str, *, is_disabled: bool) -> None:
        """Let an operator disable or enable a host."""

        def task(current: Current) -> Plan[None] | None:
            rows = rows_of_service(current.state, host)
            facts = apply_service_change(current.state, rows, ServiceChange(is_disabled=is_disabled))
            return Plan(answer=None, writes=writes_of_service(current.state, rows, facts))

        self.send_request("disable" if is_disabled else "enable", lambda process: process.run(task))

    def enable_later(self, host: str, *, after_s: float) -> None:
        """Let an operator enable a host after a while."""
        self.events.schedule(after_s, "enable later", lambda: self.disable(host, is_disabled=False), detail=host)

    def restore(self, backup: Backup) -> None:
        """Stop all servers, and let an operator restore a backup; then they start again."""
        for process in self.processes:
            process.die()
        before = self.statuses()
        self.store.restore(backup, now_s=self.clock.time_s, new_uuid=lambda: UUID(self.new_uuid()).bytes)
        self.restored = compare_backup(
            self.restored,
            before,
            self.statuses(),
            shelf=self.shelf,
            hosts=[machine.host for machine in self.machines],
        )
        self.lost_guests |= self.restored.missing | self.restored.busy

    def _note_refusal(self, error: RoostError) -> None:
        if not isinstance(error, (Conflict, NotFound)):
            raise error
        self.events.note(f"refused: {error}")
