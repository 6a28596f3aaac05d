"""Random hosts, instances, aggregates and requests for the duel of Roost and nova-scheduler."""

import json
import random

from tests.nova.nova_clouds import NovaCloud, SceneOfTest, new_uuid
from tests.support.nova_messages import destination, flavor, image, instance_group, nova_object

POLICIES = ("affinity", "anti-affinity", "soft-affinity", "soft-anti-affinity")
PROJECTS = ("alpha", "beta")


def numa_topology(cells, *, cpus, memory_mb):
    """Return the column of a compute node with equal cells."""
    rows = []
    for number in range(cells):
        own = list(range(number * cpus, (number + 1) * cpus))
        pages = nova_object("NUMAPagesTopology", "1.1", size_kb=4, total=memory_mb * 256, used=0, reserved=0)
        rows.append(
            nova_object(
                "NUMACell",
                "1.5",
                id=number,
                cpuset=own,
                pcpuset=[],
                memory=memory_mb,
                cpu_usage=0,
                memory_usage=0,
                pinned_cpus=[],
                siblings=[[each] for each in own],
                mempages=[pages],
                socket=number,
            )
        )
    return json.dumps(nova_object("NUMATopology", "1.2", cells=rows))


def pci_stats(count, *, numa_node):
    """Return the column of a compute node with devices of one kind."""
    tags = {"dev_type": "type-PCI"}
    pool = nova_object(
        "PciDevicePool", "1.1", vendor_id="8086", product_id="154c", numa_node=numa_node, tags=tags, count=count
    )
    return json.dumps(nova_object("PciDevicePoolList", "1.1", objects=[pool]))


def instance_topology(cells, *, vcpus, memory_mb):
    """Return the topology that Nova's API computes from ``hw:numa_nodes``."""
    part = vcpus // cells
    rows = [
        nova_object(
            "InstanceNUMACell",
            "1.6",
            id=number,
            cpuset=list(range(number * part, (number + 1) * part)),
            pcpuset=[],
            cpuset_reserved=None,
            memory=memory_mb // cells,
            pagesize=None,
            cpu_pinning_raw=None,
            cpu_policy=None,
            cpu_thread_policy=None,
        )
        for number in range(cells)
    ]
    return nova_object("InstanceNUMATopology", "1.3", cells=rows, emulator_threads_policy=None)


class DuelWorld(SceneOfTest):
    """Random hosts in a cloud, with instances and aggregates; its requests accept no other hosts.

    Args:
        seed: of all choices.
    """

    def __init__(self, cloud: NovaCloud, cell: str, seed: str) -> None:
        self._random = random.Random(seed)
        self.instances = {}  # host by uuid
        self._amounts = {}  # of each instance, by provider
        self._restore, self._moving = None, ""  # returns a moved instance to its host
        self.zones, self.aggregates, self._zoned = [], [], set()
        super().__init__(cloud, cell, count=0)
        for number in range(self._random.randint(3, 7)):
            self._add_random_host(f"h{number}")
        self.hosts = sorted(self.nodes)
        cloud.wait_for_hosts(*self.hosts)
        self._wait_for_counts()
        # Roost's registration of a host changes the generation of its provider, so it comes first.
        for number in range(self._random.randint(0, 3)):
            self._add_random_aggregate(number)

    def _add_random_host(self, name):
        choose = self._random.choice
        reserved_mib = choose((0, 512, 512, 1024))
        vcpus, memory_mb, disk_gb = choose((4, 8, 16)), choose((2048, 4096, 8192)), choose((40, 80, 160))
        ratio = choose((1.0, 1.0, 2.0))
        guests = [(choose((1, 2)), choose((128, 256)), choose((1, 2))) for _ in range(self._random.randint(0, 2))]
        used = [sum(amounts) for amounts in zip(*guests, strict=True)] or [0, 0, 0]
        cells = choose((0, 0, 1, 2))
        stats = {
            "num_instances": len(guests),
            "io_workload": choose((0, 0, 1, 3)),
            "failed_builds": choose((0, 0, 0, 1)),
        }
        columns = {
            "vcpus": vcpus,
            "vcpus_used": used[0],
            "memory_mb": memory_mb,
            "memory_mb_used": reserved_mib + used[1],
            "free_ram_mb": memory_mb - reserved_mib - used[1],
            "local_gb": disk_gb,
            "local_gb_used": used[2],
            "free_disk_gb": disk_gb - used[2],
            "disk_available_least": disk_gb - used[2],
            "cpu_allocation_ratio": ratio,
            "hypervisor_type": choose(("QEMU", "QEMU", "KVM")),
            "hypervisor_version": choose((8002002, 8002002, 9000000)),
            "supported_instances": json.dumps([["x86_64", "kvm", "hvm"], *choose(([], [["aarch64", "qemu", "hvm"]]))]),
            "stats": json.dumps({name: str(value) for name, value in stats.items()}),
            "numa_topology": numa_topology(cells, cpus=vcpus // cells, memory_mb=memory_mb // cells) if cells else None,
            "pci_stats": pci_stats(self._random.randint(1, 3), numa_node=0)
            if choose((True, False))
            else pci_stats(0, numa_node=0),
        }
        traits = ["OWNER_NOVA", *choose(([], ["HW_CPU_X86_AVX2"]))]
        totals = {"VCPU": vcpus, "MEMORY_MB": memory_mb, "DISK_GB": disk_gb}
        totals |= choose(({}, {"CUSTOM_GADGET": 2}))
        host = self.add_host(
            name,
            traits=traits,
            totals=totals,
            ratios={"VCPU": ratio},
            reserved_mib=reserved_mib,
            waits=False,
            **columns,
        )
        for amounts in guests:
            number = new_uuid()
            names = ("VCPU", "MEMORY_MB", "DISK_GB")
            self._amounts[number] = {self.nodes[host]: dict(zip(names, amounts, strict=True))}
            self.cloud.claim(number, self._amounts[number])
            self.cloud.database.add_instance(self.cell, host, uuid=number)
            self.instances[number] = host
        if self._random.random() < 0.1:
            self.cloud.database.set_service(self.cell, host, disabled=True)

    def _wait_for_counts(self):
        counts = {host: list(self.instances.values()).count(host) for host in self.hosts}
        self.wait_for(lambda hosts: all(hosts[host]["instances"] == count for host, count in counts.items()))

    def _add_random_aggregate(self, number):
        name = f"{self._prefix}-a{number}"
        hosts = [host for host in self.hosts if self._random.random() < 0.6]
        metadata = self._random.choice(({}, {"availability_zone": f"{self._prefix}-z{number}"}, {"ssd": "true"}))
        if "availability_zone" in metadata:  # Nova's API refuses a host in two zones.
            hosts = [host for host in hosts if host not in self._zoned]
            self._zoned.update(hosts)
        aggregate = self.cloud.database.add_aggregate(name, hosts=hosts, metadata=metadata)
        for host in hosts:
            self.cloud.add_to_aggregate(self.nodes[host], aggregate)
        self.aggregates.append(aggregate)
        if "availability_zone" in metadata:
            self.zones.append(metadata["availability_zone"])
        self.cloud.cast_aggregates([(aggregate, name, hosts, metadata)])
        wait_for = self.cloud.metadata_of
        self.wait_for(lambda _: (wait_for(aggregate) or {}) == metadata)

    def request(self):
        """Return the instances and the fields of a random request."""
        choose = self._random.choice
        count = choose((1, 1, 1, 2, 3))
        vcpus, memory_mb, root_gb = choose((1, 2, 4, 8)), choose((64, 128, 512, 1024)), choose((1, 1, 5, 20))
        specs = {f"trait:{self._trait}": "required"}
        specs |= choose((*[{}] * 8, {"trait:HW_CPU_X86_AVX2": "required"}, {"trait:HW_CPU_X86_AVX2": "forbidden"}))
        specs |= choose((*[{}] * 8, {"resources:CUSTOM_GADGET": "1"}, {"capabilities:hypervisor_type": "QEMU"}))
        specs |= choose((*[{}] * 8, {"aggregate_instance_extra_specs:ssd": "true"}))
        fields = {
            "project_id": choose(PROJECTS),
            "image": choose(
                (*[image()] * 8, image(hw_architecture="aarch64"), image(traits_required=["HW_CPU_X86_AVX2"]))
            ),
        }
        kinds = (
            "plain",
            "plain",
            "ignore",
            "force",
            "host",
            "node",
            "zone",
            "group",
            "different",
            "same",
            "numa",
            "pci",
        )
        kind = choose((*kinds, "aggregate", "forbidden", "cell", "query", "migrate", "evacuate"))
        if kind in {"migrate", "evacuate"} and self.instances:
            count = 1
            uuids = [self._random.choice(sorted(self.instances))]
        else:
            uuids = [new_uuid() for _ in range(count)]
        fields |= self._fields_of(kind, uuids, specs, vcpus=vcpus, memory_mb=memory_mb)
        fields["flavor"] = flavor(vcpus=vcpus, memory_mb=memory_mb, root_gb=root_gb, extra_specs=specs)
        fields["num_instances"] = count
        return kind, uuids, fields

    def _fields_of(self, kind, uuids, specs, *, vcpus, memory_mb):
        host = self._random.choice(self.hosts)
        if kind == "ignore":
            return {"ignore_hosts": self._random.sample(self.hosts, self._random.randint(1, len(self.hosts) - 1))}
        if kind == "force":
            return {"force_hosts": [host]}
        if kind in {"host", "node"}:
            named = {"host": host, "node": None} if kind == "host" else {"node": host}
            return {"requested_destination": destination(**named)}
        if kind == "zone" and self.zones:
            return {"availability_zone": self._random.choice([*self.zones, "nowhere"])}
        if kind == "group":
            return self._group(uuids)
        if kind in {"different", "same"} and self.instances:
            return {"scheduler_hints": {f"{kind}_host": [self._random.choice(sorted(self.instances))]}}
        if kind == "numa":
            cells = self._random.choice((1, 2)) if vcpus > 1 else 1
            specs["hw:numa_nodes"] = str(cells)
            return {"numa_topology": instance_topology(cells, vcpus=vcpus, memory_mb=memory_mb)}
        if kind == "pci":
            return {"pci_requests": self._devices()}
        if kind in {"aggregate", "forbidden"} and self.aggregates:
            one = self._random.choice(self.aggregates)
            named = {"aggregates": [one]} if kind == "aggregate" else {"forbidden_aggregates": [one]}
            return {"requested_destination": destination(**named)}
        if kind == "query":
            return {"scheduler_hints": {"query": [json.dumps([">=", "$free_disk_mb", 60000])]}}
        if kind in {"migrate", "evacuate"} and self.instances:
            return self._move(kind, uuids[0])
        if kind == "cell":
            cell = nova_object("CellMapping", "1.1", **self.cloud.cell_row(self.cell))
            target = destination(cell=cell, allow_cross_cell_move=False)
            return {"requested_destination": target, "ignore_hosts": [host]}
        return {}

    def _move(self, kind, number):
        """Prepare the allocations of an instance as Nova's conductor does before it calls the scheduler."""
        source = self.instances[number]
        if kind == "migrate":
            migration = new_uuid()
            self._moving = number
            self.cloud.move_allocations(number, migration)
            self._restore = lambda: self.cloud.move_allocations(migration, number)
        cell = nova_object("CellMapping", "1.1", **self.cloud.cell_row(self.cell))
        target = destination(cell=cell, allow_cross_cell_move=False)
        # A resize may stay on its host.
        return {"requested_destination": target, "ignore_hosts": self._random.choice(([source], [source], None))}

    def release(self, *uuids):
        """Take claims back; an instance in evacuation keeps those on its host."""
        self.cloud.release(*uuids)
        for number in uuids:
            if number in self._amounts and self._restore is None:
                self.cloud.claim(number, self._amounts[number])
                self.cloud.database.set_instance(self.cell, number)  # As the end of its task does.
                self._wait_for_counts()

    def end_request(self):
        """Return a moved instance to its host."""
        if self._restore is not None:
            self._restore()
            self._restore = None
            self.cloud.database.set_instance(self.cell, self._moving)
            self._wait_for_counts()

    def _devices(self):
        spec = [{"vendor_id": "8086", "product_id": "154c"}]
        request = nova_object(
            "InstancePCIRequest",
            "1.4",
            count=self._random.choice((1, 2)),
            spec=spec,
            alias_name="card",
            is_new=False,
            request_id=new_uuid(),
            requester_id=None,
            numa_policy=None,
        )
        return nova_object("InstancePCIRequests", "1.1", requests=[request])

    def _group(self, uuids):
        members = self._random.sample(sorted(self.instances), min(len(self.instances), self._random.randint(0, 2)))
        policy = self._random.choice(POLICIES)
        hosts = [self.instances[member] for member in members]
        if len(set(hosts)) != (1 if policy == "affinity" else len(hosts)):
            members = members[:1]  # Members against the policy of their group cannot be in Roost.
        group = instance_group(new_uuid(), policy, *members, *uuids)
        group["nova_object.data"]["hosts"] = sorted({self.instances[member] for member in members})
        return {"instance_group": group, "scheduler_hints": {"group": [group["nova_object.data"]["uuid"]]}}
