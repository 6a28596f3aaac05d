import ast

from tests.tidy import repository

# A name that says nothing collects everything.
BANNED = {"utils", "helpers", "common", "misc", "base", "manager", "core", "types2"}

# The filter of virtual CPUs has the name that settings know it by; in it, core means a processor's.
SAYING = {"src/roost/scheduler/filters/core.py"}


def test_no_file_has_a_name_that_says_nothing():
    # `util`, `helper` and `managers` say no more than the forms on the list.
    banned = {form for name in BANNED for form in (name, f"{name}s", name.removesuffix("s"))}
    found = [path for path in repository.files() if banned & {part.split(".")[0] for part in path.parts}]
    assert [path for path in found if path.as_posix() not in SAYING] == []


def test_what_tests_share_is_a_module_and_no_other_test_file():
    taken = [(path.as_posix(), name) for path in repository.python_files() for name in taken_from_tests(path)]
    assert taken == []


def taken_from_tests(path):
    """Yield what a file imports of files that are there for their tests, or of the tests themselves."""
    for node in ast.walk(repository.tree(path)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "tests":
            names = [f"{node.module}.{each.name}" for each in node.names]
            yield from (name for name in names if any(part.startswith("test_") for part in name.split(".")))
