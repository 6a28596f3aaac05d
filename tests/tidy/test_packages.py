"""Each package's docstring lists its parts, so that a reader finds a module from the package."""

import ast

import pytest

from tests.tidy import repository


def packages():
    """Return the packages below the top, as the paths of their ``__init__``; docs/ARCHITECTURE.md lists these."""
    inits = [path for path in repository.python_files() if path.parts[0] == "src" and path.name == "__init__.py"]
    return [path for path in inits if path.parent.name != "roost"]


def unlisted(path):
    """Return the modules and sub-packages that the docstring of a package does not name.

    A package with one module per thing, such as filters, says so instead.
    """
    docstring = ast.get_docstring(repository.tree(path)) or ""
    if "one module per" in docstring.lower() or "one file per" in docstring.lower():
        return []
    folder = repository.ROOT / path.parent
    parts = {each.stem for each in folder.glob("*.py")} | {each.parent.name for each in folder.glob("*/__init__.py")}
    return sorted(part for part in parts - {"__init__", "__main__"} if f"``{part}``" not in docstring)


def test_docstrings_of_packages_name_their_parts():
    assert {path: unlisted(path) for path in packages() if unlisted(path)} == {}


@pytest.mark.parametrize("path", packages(), ids=str)
def test_docstring_of_a_package_names_no_missing_part(path):
    docstring = ast.get_docstring(repository.tree(path)) or ""
    for line in docstring.splitlines():
        name, _, rest = line.strip().partition("``: ")
        if rest and name.removeprefix("``").isidentifier():
            folder = repository.ROOT / path.parent
            assert (folder / f"{name[2:]}.py").exists() or (folder / name[2:] / "__init__.py").exists()


def lazy_packages():
    """Return the packages that import names on their first use."""
    return [path for path in packages() if "def __getattr__" in repository.read(path)]


@pytest.mark.parametrize("path", lazy_packages(), ids=str)
def test_lazy_package_has_no_name_of_its_own_modules(path):
    """An import of the module would replace the name in the package."""
    folder = repository.ROOT / path.parent
    modules = {each.stem for each in folder.glob("*.py")} | {each.parent.name for each in folder.glob("*/__init__.py")}
    imports = (node for node in ast.walk(repository.tree(path)) if isinstance(node, ast.ImportFrom))
    package = ".".join(path.parent.parts[1:])
    names = {alias.asname or alias.name for node in imports if node.module != package for alias in node.names}
    assert names & modules == set()
