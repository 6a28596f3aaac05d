"""Which processors a request asks for: shared ones (VCPU), or some of its own (PCPU)."""

from roost.errors import BadRequest
from roost.model.request import Request
from roost.scheduler.draft import DraftGroup
from roost.scheduler.wishes import is_true, told

_POLICIES = ("dedicated", "shared", "mixed")
_THREADS = ("prefer", "isolate", "require")
_EMULATOR = ("share", "isolate")
# So many virtual processors nobody has; longer masks are not worth reading.
_CPU_MAX = 2**16


def is_pinned(request: Request) -> bool:
    """Say whether an instance wants processors of its own alone: then VCPU may be asked for in their place.

    Raises:
        BadRequest: flavor and image contradict each other.
    """
    return _policy(request) == "dedicated"


def add_processors(main: DraftGroup, request: Request) -> None:
    """Ask for PCPU, and for hosts with or without hardware threads, as flavor and image say.

    Policy ``dedicated`` wants all processors of the flavor, ``mixed`` those of its mask; emulator threads that are
    isolated want one more. Amounts replace what extra specs name.

    Raises:
        BadRequest: a policy or a mask cannot be meant, or flavor and image contradict each other.
    """
    policy, vcpus = _policy(request), request.flavor.vcpus
    emulator = request.flavor.extra_specs.get("hw:emulator_threads_policy")
    _known(emulator, _EMULATOR, "emulator_threads_policy")
    more = 1 if emulator == "isolate" else 0
    if policy == "dedicated":
        main.resources["PCPU"] = vcpus + more
    elif policy == "mixed":
        dedicated = _dedicated(request)
        main.resources["PCPU"] = dedicated + more
        main.resources["VCPU"] = vcpus - dedicated
    threads = _thread_policy(request)
    if threads == "require":
        main.require("HW_CPU_HYPERTHREADING")
    elif threads == "isolate":
        main.forbidden.add("HW_CPU_HYPERTHREADING")


def _policy(request: Request) -> str | None:
    flavor, image = told(request, "cpu_policy")
    _known(flavor, _POLICIES, "cpu_policy")
    _known(image, _POLICIES, "cpu_policy")
    if flavor is None:
        return image
    # A flavor that pins is not bound by the image; none lets an image pin more than it does itself.
    if flavor != "dedicated" and image not in (None, flavor, "shared"):
        raise BadRequest(f"extra spec hw:cpu_policy={flavor} contradicts image property hw_cpu_policy={image}")
    return flavor


def _thread_policy(request: Request) -> str | None:
    flavor, image = told(request, "cpu_thread_policy")
    _known(flavor, _THREADS, "cpu_thread_policy")
    _known(image, _THREADS, "cpu_thread_policy")
    if flavor is None or flavor == "prefer":
        return flavor or image
    if image not in (None, flavor):
        raise BadRequest(
            f"extra spec hw:cpu_thread_policy={flavor} contradicts image property hw_cpu_thread_policy={image}"
        )
    return flavor


def _known(value: str | None, values: tuple[str, ...], name: str) -> None:
    if value is not None and value not in values:
        raise BadRequest(f"{value!r} is no value of {name}: {', '.join(values)}")


def _dedicated(request: Request) -> int:
    """Return how many processors of a mixed instance are its own: those of its mask, or those for real time."""
    specs, vcpus = request.flavor.extra_specs, request.flavor.vcpus
    everyone = frozenset(range(vcpus))
    mask, most = specs.get("hw:cpu_dedicated_mask"), vcpus - 1
    if not mask:
        if not is_true(specs.get("hw:cpu_realtime")):
            return 0
        flavor, image = told(request, "cpu_realtime_mask")
        # Where the emulator's threads are told where to go, no processor has to be left for them.
        mask, most = flavor or image, vcpus if specs.get("hw:emulator_threads_policy") else vcpus - 1
    found = cpu_set(mask, everyone=everyone) if mask else everyone
    if not found <= everyone or not 0 < len(found) <= most:
        told_as = "no mask" if not mask else f"the mask {mask[:70]}"
        raise BadRequest(f"a mixed instance of {vcpus} processors cannot have those of {told_as} as its own")
    return len(found)


def cpu_set(text: str, *, everyone: frozenset[int]) -> frozenset[int]:
    """Return the processors that a mask names: numbers, ranges, and with ``^`` those that are left out.

    Args:
        everyone: what is left out of, where the mask begins by leaving out.

    Raises:
        BadRequest: a part is neither.

    >>> sorted(cpu_set("^0", everyone=frozenset(range(4)))), sorted(cpu_set("1,2-3,^2", everyone=frozenset()))
    ([1, 2, 3], [1, 3])
    """
    chosen: set[int] = set(everyone) if text.strip().startswith("^") else set()
    left_out: set[int] = set()
    for part in text.split(","):
        word = part.strip()
        if word:
            (left_out if word.startswith("^") else chosen).update(_range(word.removeprefix("^"), text))
    return frozenset(chosen - left_out)


def _range(word: str, mask: str) -> range:
    first, dash, last = word.partition("-")
    try:
        low, high = int(first), int(last if dash else first)
    except ValueError:
        raise BadRequest(f"{word!r} is no processor and no range of them in {mask[:70]!r}") from None
    if not 0 <= low <= high < _CPU_MAX:
        raise BadRequest(f"{word!r} is no range of processors in {mask[:70]!r}")
    return range(low, high + 1)
