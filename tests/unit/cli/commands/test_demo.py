import shlex
import tempfile

import pytest

SMALL = ("demo", "--host-count", 10, "--requests", 300)


def test_database_of_the_demo_stays_and_the_next_commands_explore_it(run, tmp_path):
    code, output, error = run(*SMALL, "--data", tmp_path / "demo folder")
    assert code == 0, error
    assert error.splitlines()[-1] == "requests: 300 of 300"
    commands, _, browser = output.partition("Try next:\n")[2].partition("See it in a browser, at ")
    assert shlex.split(browser)[-3:] == ["up", "--data", str(tmp_path / "demo folder")]
    lines = commands.splitlines()
    nouns = ("why", "capacity", "host")
    assert len(lines) == len(nouns)
    for line, noun in zip(lines, nouns, strict=True):
        words = shlex.split(line)
        assert run(*words[words.index(noun) :])[0] == 0, line


def test_demo_without_a_folder_keeps_a_temporary_one(run, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    _, output, _ = run(*SMALL)
    (folder,) = tmp_path.iterdir()
    assert (folder / "roost.db").exists()
    assert f"The database stays in {folder}." in output


def test_demo_never_writes_into_an_existing_database(run, tmp_path):
    assert run(*SMALL, "--data", tmp_path)[0] == 0
    before = (tmp_path / "roost.db").read_bytes()
    code, output, error = run(*SMALL, "--data", tmp_path)
    assert (code, output) == (5, "")
    assert error == f"roost: {tmp_path} has a database already: name another folder with --data\n"
    assert (tmp_path / "roost.db").read_bytes() == before


def test_demo_without_refusals_proposes_no_explanation(run, tmp_path):
    _, output, _ = run("demo", "--host-count", 10, "--requests", 1, "--seed", 5, "--data", tmp_path)
    assert " why " not in output.partition("Try next:\n")[2]


@pytest.mark.parametrize(
    ("words", "code", "problem"),
    [
        (("--listen", "nonsense"), 3, "placement.listen: must be HOST:PORT, got 'nonsense'"),
        (("--requests", 5), 2, "--requests cannot be combined with --serve"),
    ],
)
def test_wrong_option_of_a_served_demo_is_refused_before_the_fleet_is_filled(run, tmp_path, words, code, problem):
    found = run("demo", "--serve", "--data", tmp_path / "demo", *words)
    assert (found[0], found[1]) == (code, "")
    assert found[2].startswith(f"roost: {problem}")
    assert not (tmp_path / "demo").exists()


def test_speed_of_the_machine_does_not_change_the_results(run, tmp_path, monkeypatch):
    settings = tmp_path / "slow.toml"
    settings.write_text("[scheduler]\nsearch_budget_s = 1e-9\n", encoding="utf-8")
    monkeypatch.setenv("ROOST_CONFIG", str(settings))
    for words in (("demo", "--data", tmp_path / "demo"), ("replay", "--generate", "--memory")):
        code, output, error = run(*words, "--host-count", 3, "--requests", 20)
        assert (code, "placed" in output) == (0, True), error
