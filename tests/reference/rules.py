"""Slow, obvious twins of the rules: one host and one value at a time."""

import json
import uuid

_NUMBERS = {
    "=": lambda value, wanted: value >= wanted,
    "==": lambda value, wanted: value == wanted,
    "!=": lambda value, wanted: value != wanted,
    ">=": lambda value, wanted: value >= wanted,
    "<=": lambda value, wanted: value <= wanted,
}
_TEXTS = {
    "s==": lambda value, wanted: value == wanted,
    "s!=": lambda value, wanted: value != wanted,
    "s<": lambda value, wanted: value < wanted,
    "s<=": lambda value, wanted: value <= wanted,
    "s>": lambda value, wanted: value > wanted,
    "s>=": lambda value, wanted: value >= wanted,
    "<in>": lambda value, wanted: wanted in value,
}


def match(value, wanted):
    """Return whether a value meets a requirement."""
    words = wanted.split()
    if not words:
        return value == wanted
    operator, rest = words[0], words[1:]
    if operator == "<or>":
        while rest:
            if rest[0] == value and value is not None:
                return True
            rest = rest[2:]
        return False
    if operator == "<all-in>":
        return value is not None and bool(rest) and not [word for word in rest if word not in value]
    if operator in _NUMBERS:
        return value is not None and bool(rest) and _NUMBERS[operator](float(value), float(rest[0]))
    if operator in _TEXTS:
        return value is not None and bool(rest) and _TEXTS[operator](value, rest[0])
    return value == wanted


def compute(state, row, spec, *, down_time_s):
    """Return whether a host is enabled and up."""
    facts = state.hosts.facts[row]
    if facts.is_disabled or facts.is_forced_down:
        return False
    if facts.reported_at_s is None:
        return True
    age_s = spec.now_s - facts.reported_at_s
    return -down_time_s <= age_s <= down_time_s


def image_properties(state, row, spec):
    """Return whether a host supports the image properties, whose values are normalised."""
    properties = {} if spec.image is None else spec.image.properties
    named = [properties[key] for key in ("hw_architecture", "img_hv_type", "hw_vm_mode") if key in properties]
    if not named:
        return True
    facts = state.hosts.facts[row]
    version = properties.get("img_hv_requested_version")
    if version is not None and facts.hypervisor_version:
        assert version.startswith(">=")
        wanted = [int(part) for part in version.removeprefix(">=").split(".")] + [0, 0]
        number = facts.hypervisor_version
        if [number // 1000000, number // 1000 % 1000, number % 1000] < wanted[:3]:
            return False
    return any(all(name in supported for name in named) for supported in facts.supported_instances)


def compute_capabilities(state, row, spec):
    """Return whether a host meets all extra specs."""
    return all(_has_capability(state, row, key, wanted) for key, wanted in spec.flavor.extra_specs.items())


def _has_capability(state, row, key, wanted):
    path = key.split(":")
    attributes = _attributes(state, row)
    stats = state.hosts.facts[row].stats
    if len(path) > 1:
        if path[0] != "capabilities":
            return True
        path = path[1:]
    elif path[0] not in attributes and path[0] not in stats:
        return True
    value = attributes.get(path[0])
    if value is None:
        value = stats.get(path[0])
    for name in path[1:]:
        value = value.get(name) if isinstance(value, dict) else None
    if value is None:
        return False
    try:
        return match(str(value), wanted)
    except ValueError:
        return False


def _attributes(state, row):
    hosts = state.hosts
    facts = hosts.facts[row]
    attributes = {
        "hypervisor_type": facts.hypervisor_type or None,
        "hypervisor_version": facts.hypervisor_version or None,
        "cpu_info": facts.cpu_info or None,
        "host": hosts.names[row],
    }
    for name in ("free_ram_mb", "num_instances", "vcpus_used", "vcpus_total", "num_io_ops"):
        attributes[name] = int(hosts.columns[name].view[row])
    return attributes


def json_query(state, row, spec):
    """Return whether the query in the hint holds for a host; values that Python cannot compare refuse it."""
    query = spec.request.hints["query"]
    expression = json.loads(query[0] if isinstance(query, list) else query)
    try:
        answer = _evaluate(expression, _all_attributes(state, row)) if expression else True
    except TypeError:
        return False
    return any(answer) if isinstance(answer, list) else bool(answer)


def _evaluate(expression, attributes):
    if not expression:
        return True
    name, operands = expression[0], []
    for each in expression[1:]:
        value = each
        if isinstance(each, list):
            value = _evaluate(each, attributes)
        elif isinstance(each, str):
            value = _resolve(each, attributes)
        if value is not None:
            operands.append(value)
    if name in ("and", "or"):
        return {"and": all, "or": any}[name](operands)
    if name == "not":
        return [not each for each in operands]
    if len(operands) < 2:
        return False
    first, *others = operands
    if name == "in":
        return first in others
    verdicts = [_ORDERS[name](first, each) for each in others]
    return all(verdicts)


_ORDERS = {
    "=": lambda one, other: one == other,
    "<": lambda one, other: one < other,
    ">": lambda one, other: one > other,
    "<=": lambda one, other: one <= other,
    ">=": lambda one, other: one >= other,
}


def _resolve(text, attributes):
    if not text.startswith("$"):
        return text or None
    name, *rest = text[1:].split(".")
    value = attributes.get(name)
    for each in rest:
        value = value.get(each) if isinstance(value, dict) else None
    return value


def _all_attributes(state, row):
    hosts, facts = state.hosts, state.hosts.facts[row]
    return _attributes(state, row) | {
        "stats": facts.stats,
        "host_ip": facts.host_ip or None,
        "nodename": hosts.nodes[row],
        "supported_instances": [list(each) for each in facts.supported_instances],
        "cpu_allocation_ratio": float(hosts.columns["cpu_allocation_ratio"].view[row]),
    }


def retry(state, row, spec):
    """Return whether the request has not tried a host before."""
    return [state.hosts.names[row], state.hosts.nodes[row]] not in [list(each) for each in spec.request.retry.hosts]


def reported_metrics(state, row, _, names):
    """Return whether a host reports all of the metrics."""
    return all(name in state.hosts.facts[row].metrics for name in names)


def core(state, row, spec, ratio):
    """Return whether a host has enough free virtual CPUs."""
    total, used = (_number(state, row, name) for name in ("vcpus_total", "vcpus_used"))
    if not total:
        return True
    limit = total * ratio
    if limit > 0 and spec.flavor.vcpus > total:
        return False
    return limit - used >= spec.flavor.vcpus


def ram(state, row, spec, ratio):
    """Return whether a host has enough free memory."""
    total, free = (_number(state, row, name) for name in ("total_usable_ram_mb", "free_ram_mb"))
    wanted = spec.flavor.memory_mb
    return total >= wanted and total * ratio - (total - free) >= wanted


def disk(state, row, spec, ratio):
    """Return whether a host has enough free disk."""
    total, free = _number(state, row, "total_usable_disk_gb") * 1024, _number(state, row, "free_disk_mb")
    wanted = (spec.flavor.root_gb + spec.flavor.ephemeral_gb) * 1024 + spec.flavor.swap
    return total >= wanted and total * ratio - (total - free) >= wanted


def _number(state, row, name):
    return float(state.hosts.columns[name].view[row])


def of_aggregates(state, row):
    """Return the metadata of a host's aggregates."""
    aggregates = state.membership.labels_of(int(state.hosts.provider_row.view[row]))
    return [metadata for number, metadata in state.metadata.items() if number in aggregates]


def least(state, row, key, default, cast):
    """Return the lowest number that a host's aggregates set; the default without any, or if one is not a number."""
    try:
        numbers = [cast(metadata[key]) for metadata in of_aggregates(state, row) if key in metadata]
    except ValueError:
        return default
    # "nan" is not equal to itself.
    return min(numbers, default=default) if all(each == each for each in numbers) else default  # noqa: PLR0124


def _parts(value):
    return [part.strip() for part in value.split(",")]


def availability_zone(state, row, spec, default):
    """Return whether a host is in one of the requested zones."""
    wanted = [part for part in _parts(spec.request.availability_zone or "") if part]
    zones = [each["availability_zone"] for each in of_aggregates(state, row) if "availability_zone" in each]
    has = [part for value in zones for part in _parts(value)] if zones else [default]
    return not wanted or any(zone in has for zone in wanted)


def aggregate_multi_tenancy_isolation(state, row, spec):
    """Return whether a host is open to all projects or reserved for the project."""
    tenants = [
        value
        for metadata in of_aggregates(state, row)
        for key, value in metadata.items()
        if key.startswith("filter_tenant_id")
    ]
    return not tenants or any(spec.request.project_id in _parts(value) for value in tenants)


def aggregate_image_properties_isolation(state, row, spec, namespace):
    """Return whether the image properties match the metadata of a host's aggregates."""
    properties = {} if spec.image is None else spec.image.properties
    allowed = {}
    for metadata in of_aggregates(state, row):
        for key, value in metadata.items():
            if key.startswith(namespace):
                allowed.setdefault(key, []).extend(_parts(value))
    return all(not properties.get(key) or properties[key] in values for key, values in allowed.items())


def aggregate_instance_extra_specs(state, row, spec):
    """Return whether a host's aggregates meet all unscoped extra specs."""
    for key, wanted in spec.flavor.extra_specs.items():
        name = key.removeprefix("aggregate_instance_extra_specs:")
        if name == key and ":" in key:
            continue
        values = [part for each in of_aggregates(state, row) if name in each for part in _parts(each[name])]
        if not any(_matches(value, wanted) for value in values):
            return False
    return True


def _matches(value, wanted):
    try:
        return match(value, wanted)
    except ValueError:
        return False


def aggregate_type_affinity(state, row, spec):
    """Return whether a host is open to all flavors or reserved for the flavor."""
    flavors = [each["instance_type"] for each in of_aggregates(state, row) if "instance_type" in each]
    return not flavors or any(spec.flavor.name in _parts(value) for value in flavors)


def holds(state, row, uuids):
    """Return whether a host has one of the instances."""
    here = [
        str(uuid.UUID(bytes=each.uuid))
        for each in state.holders.values()
        if each.instance is not None and each.instance.host_id == state.hosts.ids[row]
    ]
    return any(each in here for each in uuids)


def simple_cidr_affinity(state, row, spec):
    """Return whether the first bits of two IPv4 addresses are equal."""
    bits = int(spec.hint("cidr", "/24").removeprefix("/"))
    own = state.hosts.facts[row].host_ip
    return bool(own) and _bits(own)[:bits] == _bits(spec.hint("build_near_host_ip"))[:bits]


def _bits(address):
    return "".join(f"{int(part):08b}" for part in address.split("."))


def isolated_hosts(state, row, spec, options):
    """Return whether image and host are both isolated, or both not."""
    image = spec.image is not None and spec.image.id in options.isolated_images
    host = state.hosts.names[row] in options.isolated_hosts
    is_restricted = options.restrict_isolated_hosts_to_isolated_images
    if not options.isolated_images:
        return not (is_restricted and host)
    return image == host if is_restricted else not image or host


def server_group_anti_affinity(_, row, spec):
    """Return whether a host has a free place for the group."""
    return spec.group.members.get(row, 0) < spec.group.limit


def server_group_affinity(_, row, spec):
    """Return whether a host has members of the group, or the group has no members."""
    return not spec.group.members or row in spec.group.members


def fault_domain(state, row, spec, number):
    """Return whether no member of another domain is in the host's rack."""
    rack = state.hosts.facts[row].rack
    if not rack:
        return False
    holder, _ = spec.group.places.get(number(rack), (number(spec.hint("fault_domain")), 0))
    return holder == number(spec.hint("fault_domain"))


def free_vcpus(state, row):
    """Return the free virtual CPUs of a host, including overcommit."""
    get = {name: column.view[row] for name, column in state.hosts.columns.items()}
    return get["vcpus_total"] * get["cpu_allocation_ratio"] - get["vcpus_used"]


def free_ram_mb(state, row):
    """Return the free memory of a host in MiB, without the reserved memory."""
    get = {name: column.view[row] for name, column in state.hosts.columns.items()}
    return get["total_usable_ram_mb"] - get["reserved_ram_mb"] - get["used_ram_mb"]


def free_disk_mb(state, row):
    """Return the free disk of a host in MiB, without the reserved disk."""
    get = {name: column.view[row] for name, column in state.hosts.columns.items()}
    return 1024 * (get["total_usable_disk_gb"] - get["reserved_disk_gb"] - get["used_disk_gb"])


def free_share(state, row):
    """Return the free share of the scarcest of three resources, 0 to 1; a resource without capacity does not count."""
    get = {name: column.view[row] for name, column in state.hosts.columns.items()}
    root = state.hosts.provider_row.view[row]
    shares = []
    for resource_class, total, reserved, used in (
        ("MEMORY_MB", "total_usable_ram_mb", "reserved_ram_mb", "used_ram_mb"),
        ("DISK_GB", "total_usable_disk_gb", "reserved_disk_gb", "used_disk_gb"),
        ("VCPU", "vcpus_total", None, "vcpus_used"),
    ):
        class_id = state.class_ids.id_of(resource_class)
        columns = None if class_id is None else state.classes.get(class_id)
        ratio = 1.0 if columns is None else columns.ratio.view[root]
        usable = get[total] - (get[reserved] if reserved else 0)
        capacity = usable * (get["cpu_allocation_ratio"] if resource_class == "VCPU" else ratio)
        if capacity > 0:
            shares.append((capacity - get[used]) / capacity)
    return min(max(min(shares, default=0), 0), 1)


def few_devices(state, row):
    """Return 100 minus the number of a host's free devices, at most 99."""
    free = 0
    for pool in state.hosts.facts[row].pci_pools:
        free += pool.count
    return 100 - min(free, 99)


def metrics(state, row, *, ratios, multiplier, required, unavailable):
    """Return the weighted sum of a host's metrics, or None if a required metric is missing."""
    values = state.hosts.facts[row].metrics
    total = 0.0
    for name, ratio in ratios:
        if name in values:
            total += values[name] * ratio
        elif required:
            return None
        elif ratio * multiplier != 0:
            return unavailable
    return total


def image_similarity(images, wanted, weights):
    """Return the weighted count of properties that the images of a host's instances share with an image."""
    total = 0
    for image in images:
        for name, text in image.items():
            if wanted.get(name) == text:
                total += weights.get(name, 0.0) if weights else 1
    return total


def multiplier(metadata, key, option):
    """Return the lowest number that aggregates set; the option without any, or if one is not a number."""
    texts = [each[key] for each in metadata if key in each]
    numbers = []
    for text in texts:
        try:
            number = float(text)
        except ValueError:
            return option
        if str(number) in ("nan", "inf", "-inf"):
            return option
        numbers.append(number)
    return min(numbers) if numbers else option


def normalise(values, *, minval=None, maxval=None):
    """Scale raw weights to the range 0 to 1."""
    if not values:
        return []
    low = min(values) if minval is None else minval
    high = max(values) if maxval is None else maxval
    return [0.0 if high == low else (value - low) / (high - low) for value in values]


def pci_passthrough(state, row, spec, mappings):
    """Return whether a host has the requested devices, by taking them one by one."""
    pools = sorted(
        state.hosts.facts[row].pci_pools, key=lambda pool: len(pool.tags) + bool(pool.address) + bool(pool.rp_uuids)
    )
    devices = [(number, pool) for number, pool in enumerate(pools) for _ in range(pool.count)]
    for request in spec.pci_requests:
        wanted = _provider_counts(request, mappings)
        left = [each for each in devices if _matches_spec(each[1], request.alternatives)]
        if wanted:
            # A mapped provider must have all its devices of the request, or it serves none.
            there = {name: sum(name in pool.rp_uuids for _, pool in left) for name in wanted}
            enough = {name for name in wanted if there[name] >= wanted[name]}
            left = [each for each in left if enough.intersection(each[1].rp_uuids)]
        if len(left) < request.count:
            return False
        taken = left[: request.count] if not wanted else []
        for name, count in wanted.items():
            taken += [each for each in left if name in each[1].rp_uuids][:count]
        for each in taken:
            devices.remove(each)
    return True


def _provider_counts(request, mappings):
    counts = {}
    for suffix, providers in mappings.items():
        if request.source == "flavor" and request.request_id and suffix.startswith(f"{request.request_id}-"):
            for uuid in providers:
                counts[uuid] = counts.get(uuid, 0) + 1
    return counts


def _matches_spec(pool, alternatives):
    kinds = {each.get("dev_type") for each in alternatives}
    if pool.dev_type in ("type-PF", "vdpa") and pool.dev_type not in kinds:
        return False
    remote = {each.get("remote_managed") for each in alternatives}
    if pool.tags.get("remote_managed") == "true" and "true" not in remote:
        return False
    movable = {each.get("live_migratable") for each in alternatives}
    if movable in ({"true"}, {"false"}) and pool.tags.get("live_migratable") not in movable:
        return False
    has = {"vendor_id": pool.vendor_id, "product_id": pool.product_id, "dev_type": pool.dev_type, **pool.tags}
    return any(
        all(str(has.get(name)).lower() == str(value).lower() for name, value in each.items()) for each in alternatives
    )
