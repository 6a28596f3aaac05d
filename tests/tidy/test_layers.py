import re
import tomllib

from tests.tidy import repository


def contract() -> list[set[str]]:
    """Return the layers of the import contract, highest first."""
    pyproject = tomllib.loads((repository.ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = pyproject["tool"]["importlinter"]["contracts"][0]["layers"]
    return [set(re.findall(r"\w+", layer)) for layer in layers]


def test_every_room_of_the_house_is_placed_in_a_layer():
    rooms = {path.stem for path in repository.SOURCE.glob("[!_]*.py")}
    rooms |= {path.name for path in repository.SOURCE.iterdir() if any(path.glob("**/*.py"))}
    assert rooms - set().union(*contract()) == set()


def test_the_plan_in_the_architecture_document_is_the_contract():
    text = (repository.ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    plan = re.search(r"```text\n(cli >.*?)```", text, re.DOTALL)
    assert plan, "docs/ARCHITECTURE.md has no plan of the layers"
    assert [set(re.findall(r"\w+", layer)) for layer in plan[1].split(">")] == contract()
