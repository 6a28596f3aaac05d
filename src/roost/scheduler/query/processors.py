"""Which processors a request asks for: shared ones (VCPU), or some of its own (PCPU)."""

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
# So many virtual processors nobody has; longer masks are not worth reading.
_CPU_MAX = 2**16


def is_pinned(request: Request) -> bool:
    """Say whether an instance wants processors of its own alone: then VCPU may be asked for in their place.

    Raises:
        BadRequest: flavor and image contradict each other.
    """
    return cpu_policy(request) == "dedicated"


def add_processors(main: DraftGroup, request: Request) -> None:
    """Ask for PCPU, and for hosts with or without hardware threads, as flavor and image say.

    Policy ``dedicated`` wants all processors of the flavor, ``mixed`` those of its mask; emulator threads that are
    isolated want one more. Amounts replace what extra specs name.

    Raises:
        BadRequest: a policy or a mask cannot be meant, or flavor and image contradict each other.
    """
    policy, vcpus = cpu_policy(request), request.flavor.vcpus
    more = 1 if emulator_policy(request) == "isolate" else 0
    if policy == "dedicated":
        main.resources["PCPU"] = vcpus + more
    elif policy == "mixed":
        dedicated = len(find_dedicated_cpus(request))
        main.resources["PCPU"] = dedicated + more
        main.resources["VCPU"] = vcpus - dedicated
    threads = thread_policy(request)
    if threads == "require":
        main.require("HW_CPU_HYPERTHREADING")
    elif threads == "isolate":
        main.forbidden.add("HW_CPU_HYPERTHREADING")


def cpu_policy(request: Request) -> CpuPolicy | None:
    """Return how an instance has its processors: shared, its own, or some of each; None: nobody says.

    Raises:
        BadRequest: no such policy, or flavor and image contradict each other.
    """
    flavor, image = (_parse_choice(value, _POLICIES, "cpu_policy") for value in read_values(request, "cpu_policy"))
    if flavor is None:
        return image
    # A flavor that pins is not bound by the image; none lets an image pin more than it does itself.
    if flavor != "dedicated" and image not in (None, flavor, "shared"):
        raise BadRequest(f"extra spec hw:cpu_policy={flavor} contradicts image property hw_cpu_policy={image}")
    return flavor


def thread_policy(request: Request) -> ThreadPolicy | None:
    """Return whether processors of an instance are to be threads of one core; None: nobody says.

    Raises:
        BadRequest: no such policy, or flavor and image contradict each other.
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
    """Return where the threads of the emulator run; None: nobody says.

    Raises:
        BadRequest: no such policy.
    """
    value = request.flavor.extra_specs.get("hw:emulator_threads_policy")
    return _parse_choice(value, _EMULATOR, "emulator_threads_policy")


def _parse_choice(value: str | None, values: tuple[_Value, ...], name: str) -> _Value | None:
    if not value:
        return None
    for each in values:
        if each == value:
            return each
    raise BadRequest(f"{value!r} is no value of extra spec hw:{name} or image property hw_{name}: {', '.join(values)}")


def find_dedicated_cpus(request: Request) -> frozenset[int]:
    """Return which processors of a mixed instance are its own: those of its mask, or those for real time.

    Raises:
        BadRequest: the mask names none, all, or some that are not there.
    """
    mask = request.flavor.extra_specs.get("hw:cpu_dedicated_mask")
    if mask:
        return _read_mask(request, mask, most=request.flavor.vcpus - 1)
    return realtime_cpus(request) if is_true(request.flavor.extra_specs.get("hw:cpu_realtime")) else frozenset()


def realtime_cpus(request: Request) -> frozenset[int]:
    """Return which processors of an instance are for real time, where its flavor wants any.

    Raises:
        BadRequest: the mask names none, or some that are not there, or all and leaves none for the emulator.
    """
    specs, vcpus = request.flavor.extra_specs, request.flavor.vcpus
    flavor, image = read_values(request, "cpu_realtime_mask")
    # Where the emulator's threads are told where to go, no processor has to be left for them.
    return _read_mask(request, flavor or image, most=vcpus if specs.get("hw:emulator_threads_policy") else vcpus - 1)


def _read_mask(request: Request, mask: str | None, *, most: int) -> frozenset[int]:
    vcpus = request.flavor.vcpus
    everyone = frozenset(range(vcpus))
    cpus = parse_cpu_mask(mask, everyone=everyone) if mask else everyone
    if not cpus <= everyone or not 0 < len(cpus) <= most:
        label = "no mask" if not mask else f"the mask {mask[:70]}"
        raise BadRequest(f"an instance of {vcpus} processors cannot have those of {label} as its own or for real time")
    return cpus


def parse_cpu_mask(text: str, *, everyone: frozenset[int]) -> frozenset[int]:
    """Return the processors that a mask names: numbers, ranges, and with ``^`` those that are left out.

    Args:
        everyone: what is left out of, where the mask begins by leaving out.

    Raises:
        BadRequest: a part is neither.

    >>> sorted(parse_cpu_mask("^0", everyone=frozenset(range(4))))
    [1, 2, 3]
    >>> sorted(parse_cpu_mask("1,2-3,^2", everyone=frozenset()))
    [1, 3]
    """
    included: set[int] = set(everyone) if text.strip().startswith("^") else set()
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
        raise BadRequest(f"{word!r} is no processor and no range of them in {mask[:70]!r}") from None
    if not 0 <= low <= high < _CPU_MAX:
        raise BadRequest(f"{word!r} is no range of processors in {mask[:70]!r}")
    return range(low, high + 1)
