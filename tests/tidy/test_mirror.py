"""Unit tests stand where their source stands."""

from pathlib import Path

from tests.tidy import repository

SOURCE, UNIT = Path("src/roost"), Path("tests/unit")
# Tests of what is beside the product.
OTHERS = {"bench"}


def folders(root):
    """Return the folders of Python files below a root."""
    return {path.parent.relative_to(root) for path in repository.python_files() if path.is_relative_to(root)}


def misplaced():
    """Return the tests that are named after a module of their package, and stand in another folder than that."""
    homes = {}
    for path in repository.python_files():
        if path.is_relative_to(SOURCE):
            homes.setdefault(path.stem, set()).add(path.relative_to(SOURCE).parent)
    for path in repository.python_files():
        if path.is_relative_to(UNIT):
            folder = path.relative_to(UNIT).parent
            own = {
                home for home in homes.get(path.stem.removeprefix("test_"), set()) if home.parts[:1] == folder.parts[:1]
            }
            if own and folder not in own:
                yield path.as_posix()


def test_each_folder_of_unit_tests_is_one_of_the_source():
    tests = {folder for folder in folders(UNIT) if not folder.parts or folder.parts[0] not in OTHERS}
    assert tests - folders(SOURCE) == set()


def test_a_test_named_after_a_module_stands_in_its_folder():
    assert list(misplaced()) == []
