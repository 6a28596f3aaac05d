from tests.tidy import repository

# A name that says nothing collects everything.
BANNED = {"utils", "helpers", "common", "misc", "base", "manager", "core", "types2"}


def test_no_file_has_a_name_that_says_nothing():
    # `util`, `helper` and `managers` say no more than the forms on the list.
    banned = {form for name in BANNED for form in (name, f"{name}s", name.removesuffix("s"))}
    assert [path for path in repository.files() if banned & {part.split(".")[0] for part in path.parts}] == []
