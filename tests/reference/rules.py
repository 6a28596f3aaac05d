"""The rules once more, slow and obvious: one host, one value at a time."""

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
    """Say whether a value is what is wanted."""
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
    """Say whether a host is enabled and up."""
    facts = state.hosts.facts[row]
    if facts.is_disabled or facts.is_forced_down:
        return False
    if facts.reported_at_s is None:
        return True
    age_s = spec.now_s - facts.reported_at_s
    return -down_time_s <= age_s <= down_time_s


def image_properties(state, row, spec):
    """Say whether a host supports what the image names; names are in their one spelling."""
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
    """Say whether a host is all that the extra specs want of it."""
    return all(_wish(state, row, key, wanted) for key, wanted in spec.flavor.extra_specs.items())


def _wish(state, row, key, wanted):
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
    told = {
        "hypervisor_type": facts.hypervisor_type or None,
        "hypervisor_version": facts.hypervisor_version or None,
        "cpu_info": facts.cpu_info or None,
        "host": hosts.names[row],
    }
    for name in ("free_ram_mb", "num_instances", "vcpus_used", "vcpus_total", "num_io_ops"):
        told[name] = int(hosts.columns[name].view[row])
    return told


def server_group_anti_affinity(_, row, spec):
    """Say whether a host has a place left for the group."""
    return spec.group.members.get(row, 0) < spec.group.limit


def server_group_affinity(_, row, spec):
    """Say whether a host is one of the group's, or the group has none."""
    return not spec.group.members or row in spec.group.members


def fault_domain(state, row, spec, number):
    """Say whether no member of another domain is in the host's rack."""
    rack = state.hosts.facts[row].rack
    if not rack:
        return False
    holder, _ = spec.group.places.get(number(rack), (number(spec.hint("fault_domain")), 0))
    return holder == number(spec.hint("fault_domain"))


def free_vcpus(state, row):
    """Return the virtual CPUs that a host has left, overcommit included."""
    get = {name: column.view[row] for name, column in state.hosts.columns.items()}
    return get["vcpus_total"] * get["cpu_allocation_ratio"] - get["vcpus_used"]


def few_devices(state, row):
    """Return 100 less the free devices of a host, of which 99 count."""
    free = 0
    for pool in state.hosts.facts[row].pci_pools:
        free += pool.count
    return 100 - min(free, 99)


def metrics(state, row, *, ratios, multiplier, required, unavailable):
    """Add up the metrics of a host; None if one is missing that must be there."""
    told = state.hosts.facts[row].metrics
    total = 0.0
    for name, ratio in ratios:
        if name in told:
            total += told[name] * ratio
        elif required:
            return None
        elif ratio * multiplier != 0:
            return unavailable
    return total


def alike(images, wanted, weights):
    """Add up what the images of a host's instances have in common with an image."""
    total = 0
    for image in images:
        for name, text in image.items():
            if wanted.get(name) == text:
                total += weights.get(name, 0.0) if weights else 1
    return total


def multiplier(metadata, key, option):
    """Return the least number that aggregates set; the option where none does, or one is no number."""
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
    """Bring raw weights to the scale 0 to 1."""
    if not values:
        return []
    low = min(values) if minval is None else minval
    high = max(values) if maxval is None else maxval
    return [0.0 if high == low else (value - low) / (high - low) for value in values]
