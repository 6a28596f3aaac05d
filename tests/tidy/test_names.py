import ast

from tests.tidy import repository

# Such names attract unrelated code.
BANNED = {"utils", "helpers", "common", "misc", "base", "manager", "core", "types2"}

# In this filter, core means a processor core; settings use the same name.
ALLOWED = {"src/roost/scheduler/filters/core.py"}


def test_no_file_has_a_meaningless_name():
    # Singular and plural forms are banned alike.
    forms = {form for name in BANNED for form in (name, f"{name}s", name.removesuffix("s"))}
    paths = [path for path in repository.files() if forms & {part.split(".")[0] for part in path.parts}]
    assert [path for path in paths if path.as_posix() not in ALLOWED] == []


def test_shared_test_code_is_not_imported_from_test_files():
    imports = [(path.as_posix(), name) for path in repository.python_files() for name in imports_from_test_files(path)]
    assert imports == []


def imports_from_test_files(path):
    """Yield the imports of a file from test files."""
    for node in ast.walk(repository.tree(path)):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] == "tests":
            names = [f"{node.module}.{each.name}" for each in node.names]
            yield from (name for name in names if any(part.startswith("test_") for part in name.split(".")))
