"""An in-memory deployment around a Nova scheduler class that sends messages."""

from copy import deepcopy

from roost.compat.exception import MigrationPreCheckError
from roost.compat.icehouse.deployment import Deployment
from roost.compat.icehouse.filter_scheduler import FilterScheduler
from roost.compat.scheduler.host_manager import HostManager, HostState
from roost.compat.scheduler.weights import RAMWeigher
from roost.errors import NotFound, Unavailable

TYPE = {"name": "small", "vcpus": 1, "memory_mb": 100, "root_gb": 1}


class World:
    """The services around a scheduler; they record messages, state changes and events in order."""

    def __init__(self, *, up="ab", broken=(), gone=(), cannot=()):
        self.up, self.broken, self.gone, self.cannot = up, broken, gone, cannot
        self.sent, self.states, self.faults, self.told = [], {}, {}, []
        self.scheduled, self.given_back, self.seen = [], [], []
        self.watched = []

    def run_instance(self, _context, instance, host, **message):
        """Record the message, or fail for a broken host."""
        self.watched.append([(state.host, state.num_instances, state.free_ram_mb) for state in self.seen])
        if host in self.broken:
            raise Unavailable(f"{host} does not answer")
        self.sent.append((instance["uuid"], host, message))

    def prep_resize(self, _context, image, instance, instance_type, host, reservations, **message):
        """Record the message, or fail for a broken host."""
        if host in self.broken:
            raise RuntimeError("broken")
        self.sent.append((instance["uuid"], host, image, instance_type["name"], reservations, message))

    def check_can_live_migrate_destination(self, _context, instance, destination, block_migration, disk_over_commit):
        """Return the check data of a live migration, or refuse the destination."""
        if destination in self.cannot:
            raise MigrationPreCheckError(reason=f"{destination} cannot")
        return {"checked": destination, "block": block_migration, "over_commit": disk_over_commit}

    def live_migration(self, _context, instance, dest, _block_migration, host, *, migrate_data):
        """Record the message, or fail for a broken host."""
        if host in self.broken:
            raise RuntimeError("broken")
        self.sent.append((instance["uuid"], host, dest, migrate_data))

    def set_scheduled(self, _context, instance_uuid):
        """Record the call."""
        self._find(instance_uuid)
        self.scheduled.append(instance_uuid)
        return {"uuid": instance_uuid}

    def set_state(self, _context, instance_uuid, *, vm_state, task_state):
        """Record the call."""
        self._find(instance_uuid)
        self.states[instance_uuid] = (vm_state, task_state)

    def add_fault(self, _context, instance_uuid, error):
        """Record the call."""
        self.faults[instance_uuid] = str(error)

    def info(self, _context, event_type, payload):
        """Record an event."""
        self.told.append((event_type, deepcopy(payload)))

    error = info

    def rollback(self, _context, reservations):
        """Record the call."""
        self.given_back.append(reservations)

    def get_all_by_topic(self, _context, topic):
        """Return all services that are up."""
        return [{"host": host, "topic": topic} for host in self.up]

    def service_is_up(self, _service):
        """Return True."""
        return True

    def _find(self, instance_uuid):
        if instance_uuid in self.gone:
            raise NotFound("instance", instance_uuid)


def scheduler_over(world, kind=FilterScheduler, *, filters=None, **free_ram_mb):
    """Return a scheduler over hosts with the given free memory in MiB."""
    world.seen = [HostState(host, f"{host}-node", free_ram_mb=free) for host, free in free_ram_mb.items()]
    hosts = HostManager(lambda: world.seen, filters=filters, weighers=[RAMWeigher])
    return kind(hosts, world, deployment=deployment_of(world))


def deployment_of(world):
    """Return the deployment that a scheduler receives."""
    return Deployment(world, world, notifier=world, quotas=world)


def event_types(world):
    """Return the types of the recorded events."""
    return [event for event, _ in world.told]
