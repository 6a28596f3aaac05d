"""The folders of unit tests mirror the folders of the source."""

from pathlib import Path

from tests.tidy import repository

SOURCE, UNIT = Path("src/roost"), Path("tests/unit")
# Tests of code outside the product.
OTHERS = {"bench"}


def python_folders(root):
    """Return the folders with Python files below a root."""
    return {path.parent.relative_to(root) for path in repository.python_files() if path.is_relative_to(root)}


def find_misplaced_tests():
    """Yield tests named after a module that are not in the folder of that module."""
    homes = {}
    for path in repository.python_files():
        if path.is_relative_to(SOURCE):
            homes.setdefault(path.stem, set()).add(path.relative_to(SOURCE).parent)
    for path in repository.python_files():
        if path.is_relative_to(UNIT):
            folder = path.relative_to(UNIT).parent
            source_folders = {
                home for home in homes.get(path.stem.removeprefix("test_"), set()) if home.parts[:1] == folder.parts[:1]
            }
            if source_folders and folder not in source_folders:
                yield path.as_posix()


def test_folders_of_unit_tests_exist_in_the_source():
    tests = {folder for folder in python_folders(UNIT) if not folder.parts or folder.parts[0] not in OTHERS}
    assert tests - python_folders(SOURCE) == set()


def test_unit_test_is_in_the_folder_of_its_module():
    assert list(find_misplaced_tests()) == []
