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
