"""Queries for candidates: groups, policies, trees, limits."""

from tests.differential.acts.providers import amounts, membership, traits
from tests.differential.scene import Act, Scene
from tests.differential.worlds import Provider

PATH = "/allocation_candidates"


def plain(scene: Scene) -> Act:
    """Query only the unsuffixed group."""
    minor = scene.minor(10)
    query = [
        ("resources", amounts(scene, is_spread=scene.chance(0.6), among=scene.world.neighbourhood())),
        *_conditions(scene, minor, ""),
    ]
    yield scene.request("GET", PATH, minor, query=query + _whole_query_options(scene, minor))


def groups(scene: Scene) -> Act:
    """Query several groups."""
    draw, minor = scene.draw, scene.minor(25)
    names = ("1", "2", "3") if minor < 33 or scene.chance(0.3) else ("_A", "_NET", "-b")
    suffixes = list(names[: draw.choice((1, 1, 2, 2, 3))])
    query: list[tuple[str, str]] = []
    among = scene.world.neighbourhood()
    if scene.chance(0.5):
        query += [
            ("resources", amounts(scene, is_spread=scene.chance(0.4), among=among)),
            *_conditions(scene, minor, ""),
        ]
    bare = suffixes[-1] if minor >= 36 and len(suffixes) > 1 and scene.chance(0.3) else None
    for suffix in suffixes:
        if suffix == bare:
            query.append((f"required{suffix}", scene.world.any_trait()))
            query += _conditions(scene, minor, suffix)
        else:
            query += [(f"resources{suffix}", _few_amounts(scene, among)), *_conditions(scene, minor, suffix)]
    if len(suffixes) > 1 or scene.chance(0.3):
        query.append(("group_policy", draw.choice(("none", "none", "isolate"))))
        if scene.chance(0.03):
            query.pop()
    if minor >= 36 and (bare or scene.chance(0.12)) and not scene.chance(0.03):
        named = {bare or suffixes[0], *draw.sample(suffixes, draw.randint(1, len(suffixes)))}
        query.append(("same_subtree", ",".join(sorted(named))))
    if scene.chance(0.2):
        draw.shuffle(query)
    yield scene.request("GET", PATH, minor, query=query + _whole_query_options(scene, minor))


def odd(scene: Scene) -> Act:
    """Send a query that is invalid, or almost invalid."""
    world, draw, minor = scene.world, scene.draw, scene.minor(10)
    one = amounts(scene)
    query = draw.choice(
        (
            [],
            [("resources", "")],
            [("resources", "VCPU")],
            [("resources", "VCPU:0")],
            [("resources", "VCPU:-1")],
            [("resources", "VCPU:1.5")],
            [("resources", f"{one},")],
            [("resources", f"{one},VCPU:1")],
            [("resources", "NOT_A_CLASS:1"), ("required", "NOT_A_TRAIT")],
            [("resources", one), ("limit", "0")],
            [("resources", one), ("limit", "many")],
            [("resources", one), ("limit", "1"), ("limit", "2")],
            [("resources", one), ("resources", "MEMORY_MB:1")],
            [("resources", one), ("bogus", "1")],
            [("required", world.any_trait())],
            [("resources1", one), ("resources2", one)],
            [("resources1", one), ("resources2", one), ("group_policy", "some")],
            [("resources1", one), ("required2", "COMPUTE_NODE")],
            [("resources_A", one), ("same_subtree", "_A,_B")],
            [("resources_A", one), ("same_subtree", "")],
            [("resources", one), ("in_tree", "no-uuid")],
            [("resources", one), ("in_tree", world.new_uuid())],
            [("resources", one), ("root_required", "COMPUTE_NODE"), ("root_required", "COMPUTE_NODE")],
            [("resources", one), ("root_required", "COMPUTE_NODE,!COMPUTE_NODE")],
            [("resources", one), ("required", "COMPUTE_NODE,!COMPUTE_NODE")],
            [("resources", one), ("required", "in:COMPUTE_NODE,!HW_CPU_X86_AVX")],
            [("resources", one), ("required", "COMPUTE_NODE"), ("required", world.any_trait())],
            [("resources", one), ("member_of", world.aggregates[0]), ("member_of", world.aggregates[1])],
            [("resources0", one)],
            [("resources01", one)],
            [("resources" + "x" * 65, one)],
            [("resources.", one)],
            [("resources_A", one), ("required_B", "COMPUTE_NODE")],
            [("resources", one), ("group_policy", "isolate")],
        )
    )
    yield scene.request("GET", PATH, minor, query=list(query))


def _few_amounts(scene: Scene, among: list[Provider]) -> str:
    several = amounts(scene, among=among)
    return several.partition(",")[0] if scene.chance(0.85) else several


def _conditions(scene: Scene, minor: int, suffix: str) -> list[tuple[str, str]]:
    query = []
    if minor >= 17 and scene.chance(0.14):
        query.append((f"required{suffix}", traits(scene, minor)))
    if minor >= 39 and scene.chance(0.03):
        query.append((f"required{suffix}", traits(scene, minor)))
    if minor >= 21 and scene.chance(0.12):
        query.append((f"member_of{suffix}", membership(scene, minor)))
    if minor >= 24 and scene.chance(0.03):
        query.append((f"member_of{suffix}", membership(scene, minor)))
    if minor >= 31 and scene.chance(0.08):
        query.append((f"in_tree{suffix}", scene.world.any_provider().uuid))
    return query


def _whole_query_options(scene: Scene, minor: int) -> list[tuple[str, str]]:
    query = []
    if minor >= 16 and scene.chance(0.25):
        query.append(("limit", str(scene.draw.choice((1, 1, 2, 3, 10, 1000)))))
    if minor >= 35 and scene.chance(0.1):
        trait = scene.world.any_trait()
        query.append(("root_required", scene.draw.choice((trait, f"!{trait}"))))
    return query
