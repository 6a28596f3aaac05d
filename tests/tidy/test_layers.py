import re
import tomllib

from tests.tidy import repository


def contract() -> list[set[str]]:
    """Return the layers of the import contract, highest first."""
    pyproject = tomllib.loads((repository.ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = pyproject["tool"]["importlinter"]["contracts"][0]["layers"]
    return [set(re.findall(r"\w+", layer)) for layer in layers]


def test_every_package_is_in_a_layer():
    packages = {path.stem for path in repository.SOURCE.glob("[!_]*.py")}
    packages |= {path.name for path in repository.SOURCE.iterdir() if any(path.glob("**/*.py"))}
    assert packages - set().union(*contract()) == set()


def test_architecture_document_shows_the_import_contract():
    text = (repository.ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
    diagram = re.search(r"```text\n(cli >.*?)```", text, re.DOTALL)
    assert diagram, "docs/ARCHITECTURE.md has no plan of the layers"
    assert [set(re.findall(r"\w+", layer)) for layer in diagram[1].split(">")] == contract()
