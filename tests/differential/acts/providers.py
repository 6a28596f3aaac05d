"""Providers: create, show, list, rename, move, delete."""

from tests.differential.scene import Act, Scene
from tests.differential.worlds import Provider

PATH = "/resource_providers"


def create(scene: Scene) -> Act:
    """Create a root or child provider, with a given uuid or one that the server chooses."""
    world, draw = scene.world, scene.draw
    minor = scene.minor(20 if scene.chance(0.5) else 0)
    uuid, name = world.new_uuid(), world.new_name()
    body: dict[str, object] = {"name": name, "uuid": uuid}
    if scene.chance(0.05):
        body["uuid"] = draw.choice((uuid.replace("-", ""), uuid.upper()))
    elif scene.chance(0.05):
        del body["uuid"]
    parent = None
    if minor >= 14 and world.providers and scene.chance(0.6):
        parent = draw.choice(list(world.providers))
        body["parent_provider_uuid"] = parent
    if scene.chance(0.03) and minor >= 14:
        body["parent_provider_uuid"] = draw.choice((None, world.new_uuid(), uuid))
        parent = None
    if world.providers and scene.chance(0.05):
        other = draw.choice(list(world.providers.values()))
        field, value = draw.choice((("name", other.name), ("uuid", other.uuid)))
        body[field] = value
    answer = yield scene.request("POST", PATH, minor, body=body)
    if answer.status < 300:
        uuid = answer.headers.get("location", uuid).rpartition("/")[2]
        world.providers[uuid] = Provider(uuid, str(body["name"]), parent)


def show(scene: Scene) -> Act:
    """Show one provider."""
    provider = scene.world.any_provider()
    uuid = provider.uuid
    if scene.chance(0.05):
        uuid = scene.draw.choice((uuid.replace("-", ""), uuid.upper(), "no-uuid", "%20"))
    answer = yield scene.request("GET", f"{PATH}/{uuid}", scene.minor())
    if answer.status == 200 and uuid == provider.uuid:
        provider.generation = scene.field(answer, "generation", None)


def search(scene: Scene) -> Act:
    """List providers by some of the version's filters."""
    world, draw, minor = scene.world, scene.draw, scene.minor()
    filters: list[tuple[int, str, str]] = [
        (0, "name", world.any_provider().name),
        (0, "uuid", world.any_provider().uuid),
        (3, "member_of", membership(scene, minor)),
        (4, "resources", amounts(scene)),
        (14, "in_tree", world.any_provider().uuid),
        (18, "required", traits(scene, minor)),
    ]
    if minor >= 24:
        filters.append((24, "member_of", membership(scene, minor)))
    known = [each for each in filters if each[0] <= minor or scene.chance(0.03)]
    # One filter is more likely to match than three.
    chosen = draw.sample(known, min(len(known), draw.choice((0, 1, 1, 1, 2, 2, 3))))
    query = [(name, value) for _, name, value in chosen]
    if minor >= 39 and scene.chance(0.2):
        query.append(("required", traits(scene, minor)))
    yield scene.request("GET", PATH, minor, query=query)


def change(scene: Scene) -> Act:
    """Rename a provider, or change or remove its parent."""
    world, draw, minor = scene.world, scene.draw, scene.minor()
    provider = world.any_provider()
    body: dict[str, object] = {"name": provider.name}
    if scene.chance(0.6):
        body["name"] = world.new_name() if scene.chance(0.9) else world.any_provider().name
    if (minor >= 14 or scene.chance(0.05)) and scene.chance(0.5):
        body["parent_provider_uuid"] = draw.choice((None, provider.parent, world.any_provider().uuid))
    answer = yield scene.request("PUT", f"{PATH}/{provider.uuid}", minor, body=body)
    if answer.status == 200:
        provider.name = str(body["name"])
        if "parent_provider_uuid" in body:
            provider.parent = None if body["parent_provider_uuid"] is None else str(body["parent_provider_uuid"])


def delete(scene: Scene) -> Act:
    """Delete a provider, sometimes one that is in use."""
    world = scene.world
    provider = world.any_provider(stranger=0.2)
    idle = [each for each in world.providers.values() if not world.is_parent(each.uuid) and not _is_used(scene, each)]
    if len(world.providers) > 6 and idle and scene.chance(0.5):
        provider = scene.draw.choice(idle)
    answer = yield scene.request("DELETE", f"{PATH}/{provider.uuid}", scene.minor())
    if answer.status == 204:
        world.providers.pop(provider.uuid, None)


def membership(scene: Scene, minor: int) -> str:
    """Return a value of ``member_of``."""
    world, draw = scene.world, scene.draw
    one, other = draw.choice(world.aggregates), draw.choice(world.aggregates)
    words = [one, one, f"in:{one},{other}"]
    if minor >= 32 or scene.chance(0.05):
        words += [f"!{one}", f"!in:{one},{other}"]
    if scene.chance(0.04):
        words = [f"{one},{other}", world.new_uuid(), "in:", "", f"in:!{one}", f"!!{one}", one.replace("-", "")]
    return draw.choice(words)


def amounts(scene: Scene, *, is_spread: bool = False, among: list[Provider] | None = None) -> str:
    """Return a value of ``resources``, mostly of amounts that one or several providers offer."""
    draw = scene.draw
    stocked = among or scene.world.stocked()
    if not stocked or scene.chance(0.05):
        return f"{scene.world.any_class()}:{draw.choice((1, 2, 8, 100))}"
    names = sorted(draw.choice(stocked).inventories)
    if is_spread:
        names = sorted({name for each in draw.sample(stocked, min(len(stocked), 3)) for name in each.inventories})
    names = draw.sample(names, min(len(names), draw.choice((1, 1, 2, 3))))
    return ",".join(f"{name}:{amount(scene, name)}" for name in names)


def amount(scene: Scene, name: str) -> int:
    """Draw an amount of a class that fits the units of an inventory; mostly a small one."""
    records = [each.inventories[name] for each in scene.world.stocked() if name in each.inventories]
    if not records or scene.chance(0.1):
        return scene.draw.choice((1, 2, 3, 1000))
    record = scene.draw.choice(records)
    least = -(-record.min_unit // record.step_size) * record.step_size
    return max(1, least + record.step_size * scene.draw.choice((0, 0, 0, 1, 2, 5)))


def traits(scene: Scene, minor: int) -> str:
    """Return a value of ``required``."""
    world, draw = scene.world, scene.draw
    one, other = world.any_trait(), world.any_trait()
    words = [one, one, f"{one},{other}"]
    if minor >= 22 or scene.chance(0.05):
        words += [f"!{one}", f"{one},!{other}"]
    if minor >= 39 or scene.chance(0.05):
        words += [f"in:{one},{other}"]
    if scene.chance(0.04):
        words = ["", ",", f"{one},", "!", f"!!{one}", f"in:!{one}", f"!in:{one}", "in:", f"{one} "]
    return draw.choice(words)


def _is_used(scene: Scene, provider: Provider) -> bool:
    return any(scene.world.used(provider.uuid, name) for name in provider.inventories)
