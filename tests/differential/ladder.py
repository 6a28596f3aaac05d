"""The ladder: every route in every minor version, on a small world."""

from tests.differential.acts.allocations import body_of
from tests.differential.acts.reshapes import SERVICE
from tests.differential.exchange import Request
from tests.differential.routes import MINOR_MAX, ROUTES, Route
from tests.differential.scene import Act, Scene, ValueAct
from tests.differential.worlds import SHARES

HOST, CHILD, DISK = (f"aaaaaaaa-0000-4000-8000-{number:012d}" for number in (1, 2, 3))
CONSUMERS = tuple(f"cccccccc-0000-4000-8000-{number:012d}" for number in range(4))
AGGREGATE = "dddddddd-0000-4000-8000-000000000001"


def ladder() -> Act:
    """Return the sequence that requests each route in each version."""
    scene = Scene(0)
    yield from _world(scene)
    for minor in range(MINOR_MAX + 1):
        for route in ROUTES:
            yield from _request_route(scene, route, minor)
    for route in ROUTES:
        yield _latest(route)


def _world(scene: Scene) -> Act:
    for uuid, name, parent in ((HOST, "host", None), (CHILD, "child", HOST), (DISK, "disk", None)):
        body = {"name": name, "uuid": uuid, "parent_provider_uuid": parent}
        yield scene.request("POST", "/resource_providers", 39, body=body)
    for uuid, name, total in ((HOST, "MEMORY_MB", 4096), (CHILD, "VCPU", 16), (DISK, "DISK_GB", 1000)):
        yield scene.request(
            "POST", f"/resource_providers/{uuid}/inventories", 39, body={"resource_class": name, "total": total}
        )
    for uuid, names in ((DISK, [SHARES]), (CHILD, ["HW_CPU_X86_AVX"])):
        body = {"traits": names, "resource_provider_generation": 1}
        yield scene.request("PUT", f"/resource_providers/{uuid}/traits", 39, body=body)
    for uuid in (HOST, DISK):
        yield scene.request("PUT", f"/resource_providers/{uuid}/aggregates", 1, body=[AGGREGATE])


def _request_route(scene: Scene, route: Route, minor: int) -> Act:
    """Request one route in one version; first create its requirements in the newest version."""
    victim = scene.world.new_uuid()
    path = route.path.format(provider=HOST, consumer=CONSUMERS[0], **{"class": "MEMORY_MB", "trait": "HW_CPU_X86_AVX"})
    body: object = None
    match str(route):
        case "POST /resource_providers":
            body = {"name": f"made in {minor}", "uuid": victim}
        case "PUT /resource_providers/{provider}":
            body = {"name": "host"}
        case "DELETE /resource_providers/{provider}":
            yield scene.request("POST", "/resource_providers", 39, body={"name": victim, "uuid": victim})
            path = f"/resource_providers/{victim}"
        case "POST /resource_providers/{provider}/inventories":
            yield scene.request("POST", "/resource_providers", 39, body={"name": victim, "uuid": victim})
            body, path = {"resource_class": "VCPU", "total": 4}, f"/resource_providers/{victim}/inventories"
        case "PUT /resource_providers/{provider}/inventories":
            generation = yield from _generation(scene, HOST)
            body = {"resource_provider_generation": generation, "inventories": {"MEMORY_MB": {"total": 4096 + minor}}}
        case "DELETE /resource_providers/{provider}/inventories":
            path = f"/resource_providers/{(yield from _new_provider(scene, victim))}/inventories"
        case "PUT /resource_providers/{provider}/inventories/{class}":
            generation = yield from _generation(scene, HOST)
            body = {"resource_provider_generation": generation, "total": 4096}
        case "DELETE /resource_providers/{provider}/inventories/{class}":
            path = f"/resource_providers/{(yield from _new_provider(scene, victim))}/inventories/VCPU"
        case "PUT /resource_providers/{provider}/aggregates":
            generation = yield from _generation(scene, HOST)
            body = (
                [AGGREGATE] if minor < 19 else {"aggregates": [AGGREGATE], "resource_provider_generation": generation}
            )
        case "PUT /resource_providers/{provider}/traits":
            generation = yield from _generation(scene, HOST)
            body = {"traits": ["COMPUTE_NODE"][: minor % 2], "resource_provider_generation": generation}
        case "POST /resource_classes":
            body = {"name": f"CUSTOM_MADE_{minor}"}
        case "PUT /resource_classes/{class}":
            path = f"/resource_classes/CUSTOM_{'MADE' if minor < 7 else 'PUT'}_{minor}"
            body = {"name": f"CUSTOM_RENAMED_{minor}"} if minor < 7 else None
        case "DELETE /resource_classes/{class}":
            path = f"/resource_classes/CUSTOM_{'RENAMED' if minor < 7 else 'PUT'}_{minor}"
        case "PUT /traits/{trait}" | "DELETE /traits/{trait}":
            path = f"/traits/CUSTOM_MADE_{minor}"
        case "GET /usages":
            path += "?project_id=p1"
        case "GET /allocation_candidates":
            path += "?resources=VCPU:1,DISK_GB:10"
        case "PUT /allocations/{consumer}":
            yield from _write(scene, route, minor, CONSUMERS[0])
            return
        case "POST /allocations":
            yield from _write(scene, route, minor, CONSUMERS[1])
            return
        case "POST /reshaper":
            yield from _reshape(scene, minor)
            return
        case "DELETE /allocations/{consumer}":
            # So the next version finds one existing and one new consumer.
            path = f"/allocations/{CONSUMERS[minor % 2]}"
    yield scene.request(route.method, path, minor, body=body)


def _write(scene: Scene, route: Route, minor: int, consumer: str) -> Act:
    generation = yield from _consumer_generation(scene, consumer)
    body = body_of(scene, minor, {CHILD: {"VCPU": 1}, HOST: {"MEMORY_MB": 8}}, generation)
    if route.method == "POST":
        yield scene.request("POST", "/allocations", minor, body={consumer: body})
    else:
        yield scene.request("PUT", f"/allocations/{consumer}", minor, body=body)


def _reshape(scene: Scene, minor: int) -> Act:
    generation = yield from _generation(scene, CHILD)
    consumer_generation = yield from _consumer_generation(scene, CONSUMERS[2])
    inventories = {"resource_provider_generation": generation, "inventories": {"VCPU": {"total": 32 + minor}}}
    body = {
        "inventories": {CHILD: inventories},
        "allocations": {CONSUMERS[2]: body_of(scene, minor, {CHILD: {"VCPU": 2}}, consumer_generation)},
    }
    yield scene.request("POST", "/reshaper", minor, body=body, headers=SERVICE)


def _latest(route: Route) -> Request:
    path = route.path.format(provider=HOST, consumer=CONSUMERS[0], **{"class": "VCPU", "trait": "HW_CPU_X86_AVX"})
    headers = (("x-auth-token", "admin"), ("openstack-api-version", "placement latest"))
    return Request(method=route.method if route.method == "GET" else "GET", path=path, headers=headers)


def _new_provider(scene: Scene, uuid: str) -> ValueAct[str]:
    yield scene.request("POST", "/resource_providers", 39, body={"name": uuid, "uuid": uuid})
    body = {"resource_class": "VCPU", "total": 4}
    yield scene.request("POST", f"/resource_providers/{uuid}/inventories", 39, body=body)
    return uuid


def _generation(scene: Scene, uuid: str) -> ValueAct[int]:
    answer = yield scene.request("GET", f"/resource_providers/{uuid}", 39)
    return answer.document["generation"]


def _consumer_generation(scene: Scene, consumer: str) -> ValueAct[int | None]:
    answer = yield scene.request("GET", f"/allocations/{consumer}", 39)
    return answer.document.get("consumer_generation")
