"""Shared processors (VCPU) and dedicated processors (PCPU) of a request."""

from typing import Literal, TypeVar, get_args

from roost.errors import BadRequest
from roost.model.devices.topology import CpuPolicy, ThreadPolicy
from roost.model.request import Request
from roost.model.switches import is_true
from roost.scheduler.framework.hw_settings import read_values
from roost.scheduler.query.draft import DraftGroup

EmulatorPolicy = Literal["share", "isolate"]
_POLICIES: tuple[CpuPolicy, ...] = get_args(CpuPolicy)
_THREADS: tuple[ThreadPolicy, ...] = get_args(ThreadPolicy)
_EMULATOR: tuple[EmulatorPolicy, ...] = get_args(EmulatorPolicy)
_Value = TypeVar("_Value", bound=str)
# Upper bound on processor numbers in masks.
_CPU_MAX = 2**16


def is_pinned(request: Request) -> bool:
    """Return whether all processors of an instance are dedicated.

    Only then may a second query request VCPU instead of PCPU.

    Raises:
        BadRequest: flavor and image contradict each other.
    """
    return cpu_policy(request) == "dedicated"


def add_processors(main: DraftGroup, request: Request) -> None:
    """Add PCPU, and the requirement on hardware threads, by flavor and image.

    Policy ``dedicated`` uses PCPU for all processors of the flavor, ``mixed`` for those of its mask. Isolated emulator
    threads need one more PCPU. These amounts replace those of extra specs.

    Raises:
        BadRequest: a policy or a mask is invalid, or flavor and image contradict each other.
    """
    policy, vcpus = cpu_policy(request), request.flavor.vcpus
    emulator_cpus = 1 if emulator_policy(request) == "isolate" else 0
    if policy == "dedicated":
        main.resources["PCPU"] = vcpus + emulator_cpus
    elif policy == "mixed":
        dedicated = len(find_dedicated_cpus(request))
        main.resources["PCPU"] = dedicated + emulator_cpus
        main.resources["VCPU"] = vcpus - dedicated
    threads = thread_policy(request)
    if threads == "require":
        main.require("HW_CPU_HYPERTHREADING")
    elif threads == "isolate":
        main.forbidden.add("HW_CPU_HYPERTHREADING")


def cpu_policy(request: Request) -> CpuPolicy | None:
    """Return an instance's processor policy: shared, dedicated or mixed; None: unset.

    Raises:
        BadRequest: unknown policy, or flavor and image contradict each other.
    """
    flavor, image = (_parse_choice(value, _POLICIES, "cpu_policy") for value in read_values(request, "cpu_policy"))
    if flavor is None:
        return image
    # A dedicated flavor overrides the image; any other flavor forbids a stricter image.
    if flavor != "dedicated" and image not in (None, flavor, "shared"):
        raise BadRequest(f"extra spec hw:cpu_policy={flavor} contradicts image property hw_cpu_policy={image}")
    return flavor


def thread_policy(request: Request) -> ThreadPolicy | None:
    """Return the policy for hardware threads of the instance's processors; None: unset.

    Raises:
        BadRequest: unknown policy, or flavor and image contradict each other.
    """
    flavor, image = (
        _parse_choice(value, _THREADS, "cpu_thread_policy") for value in read_values(request, "cpu_thread_policy")
    )
    if flavor is None or flavor == "prefer":
        return flavor or image
    if image not in (None, flavor):
        raise BadRequest(
            f"extra spec hw:cpu_thread_policy={flavor} contradicts image property hw_cpu_thread_policy={image}"
        )
    return flavor


def emulator_policy(request: Request) -> EmulatorPolicy | None:
    """Return the policy for the emulator's threads; None: unset.

    Raises:
        BadRequest: unknown policy.
    """
    value = request.flavor.extra_specs.get("hw:emulator_threads_policy")
    return _parse_choice(value, _EMULATOR, "emulator_threads_policy")


def _parse_choice(value: str | None, values: tuple[_Value, ...], name: str) -> _Value | None:
    if not value:
        return None
    for choice in values:
        if choice == value:
            return choice
    raise BadRequest(
        f"{value!r} is not a valid value of extra spec hw:{name} or image property hw_{name}: {', '.join(values)}"
    )


def find_dedicated_cpus(request: Request) -> frozenset[int]:
    """Return the dedicated processors of a mixed instance: those of its mask, or the real-time ones.

    Raises:
        BadRequest: the mask is empty, or names all or unknown processors.
    """
    mask = request.flavor.extra_specs.get("hw:cpu_dedicated_mask")
    if mask:
        return _read_mask(request, mask, count_max=request.flavor.vcpus - 1)
    return realtime_cpus(request) if is_true(request.flavor.extra_specs.get("hw:cpu_realtime")) else frozenset()


def realtime_cpus(request: Request) -> frozenset[int]:
    """Return the real-time processors of an instance.

    Raises:
        BadRequest: the mask is empty, names unknown processors, or leaves none for the emulator.
    """
    specs, vcpus = request.flavor.extra_specs, request.flavor.vcpus
    flavor, image = read_values(request, "cpu_realtime_mask")
    # With a policy, the emulator's threads run elsewhere, so all processors may be real-time.
    count_max = vcpus if specs.get("hw:emulator_threads_policy") else vcpus - 1
    return _read_mask(request, flavor or image, count_max=count_max)


def _read_mask(request: Request, mask: str | None, *, count_max: int) -> frozenset[int]:
    vcpus = request.flavor.vcpus
    all_cpus = frozenset(range(vcpus))
    cpus = parse_cpu_mask(mask, all_cpus=all_cpus) if mask else all_cpus
    if not cpus <= all_cpus or not 0 < len(cpus) <= count_max:
        label = "without a mask" if not mask else f"with the mask {mask[:70]}"
        raise BadRequest(f"an instance of {vcpus} processors cannot have dedicated or real-time processors {label}")
    return cpus


def parse_cpu_mask(text: str, *, all_cpus: frozenset[int]) -> frozenset[int]:
    """Parse a processor mask: numbers, ranges, and exclusions with ``^``.

    Args:
        all_cpus: all processors; an exclusion at the start of the mask removes processors from them.

    Raises:
        BadRequest: a part is invalid.

    >>> sorted(parse_cpu_mask("^0", all_cpus=frozenset(range(4))))
    [1, 2, 3]
    >>> sorted(parse_cpu_mask("1,2-3,^2", all_cpus=frozenset()))
    [1, 3]
    """
    included: set[int] = set(all_cpus) if text.strip().startswith("^") else set()
    excluded: set[int] = set()
    for part in text.split(","):
        word = part.strip()
        if word:
            (excluded if word.startswith("^") else included).update(_range(word.removeprefix("^"), text))
    return frozenset(included - excluded)


def _range(word: str, mask: str) -> range:
    first, dash, last = word.partition("-")
    try:
        low, high = int(first), int(last if dash else first)
    except ValueError:
        raise BadRequest(f"{word!r} is neither a processor nor a range in {mask[:70]!r}") from None
    if not 0 <= low <= high < _CPU_MAX:
        raise BadRequest(f"{word!r} is not a range of processors in {mask[:70]!r}")
    return range(low, high + 1)
