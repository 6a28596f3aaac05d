"""``roost-placement-manage`` and ``roost-placement-status``: arguments, exit codes and output formats for scripts."""

import contextlib
import importlib
import json
import sqlite3

import pytest

from roost.store.rules.schema import SCHEMA_VERSION

EMPTY = """\
+-----------------------------+-------------+-----------+
|          Migration          | Total Found | Completed |
+-----------------------------+-------------+-----------+
|    set_root_provider_ids    |      0      |     0     |
| create_incomplete_consumers |      0      |     0     |
+-----------------------------+-------------+-----------+
"""
GOOD = """\
+-------------------------------------------+
| Upgrade Check Results                     |
+-------------------------------------------+
| Check: Missing Root Provider IDs          |
| Result: Success                           |
| Details: None                             |
+-------------------------------------------+
| Check: Incomplete Consumers               |
| Result: Success                           |
| Details: None                             |
+-------------------------------------------+
| Check: Policy File JSON to YAML Migration |
| Result: Success                           |
| Details: None                             |
+-------------------------------------------+
"""


class Commands:
    """Runs the two commands in a folder with a configuration."""

    def __init__(self, folder, monkeypatch, capsys):
        self.folder = folder
        self.database = folder / "roost.db"
        self.conf = folder / "placement.conf"
        self.conf.write_text(f"[placement_database]\nconnection = sqlite:///{self.database}\n")
        self._patch = monkeypatch
        self._read = capsys.readouterr

    def run(self, program, *words, **more):
        """Return exit code, output and error."""
        main = importlib.import_module(f"roost.cli.placement_{program}").main
        with self._patch.context() as patch:
            patch.chdir(self.folder)
            patch.setenv("HOME", str(self.folder / "home"))
            for name, value in more.items():
                patch.setenv(name, value)
            patch.setattr("sys.argv", [program, *map(str, words)])
            with pytest.raises(SystemExit) as end:
                main()
        return end.value.code, *self._read()

    def manage(self, *words):
        """Run ``roost-placement-manage`` with the configuration."""
        return self.run("manage", "--config-file", self.conf, *words)

    def status(self, *words):
        """Run ``roost-placement-status`` with the configuration."""
        return self.run("status", "--config-file", self.conf, *words)


@pytest.fixture
def commands(tmp_path, monkeypatch, capsys):
    return Commands(tmp_path, monkeypatch, capsys)


def test_db_sync_creates_the_schema_and_db_version_prints_it(commands):
    assert commands.manage("db", "version") == (0, "None\n", "")
    for _ in range(2):
        assert commands.manage("db", "sync") == (0, "", "")
    assert commands.manage("db", "version") == (0, f"{SCHEMA_VERSION}\n", "")


def test_db_stamp_sets_the_version(commands):
    commands.manage("db", "sync")
    assert commands.manage("db", "stamp", "0002") == (0, "", "")
    assert commands.manage("db", "version")[1] == "0002\n"
    code, _, error = commands.manage("db", "stamp", "nonsense")
    assert (code, error) == (1, "roost-placement-manage: no such schema version: nonsense\n")
    assert commands.manage("db", "stamp", "head")[0] == 0
    assert commands.manage("db", "version")[1] == f"{SCHEMA_VERSION}\n"
    assert commands.manage("db", "stamp")[0] == 2


def test_online_data_migrations_have_nothing_to_do(commands):
    commands.manage("db", "sync")
    act = ("db", "online_data_migrations")
    assert commands.manage(*act) == (0, f"Running batches of 50 until complete\n{EMPTY}", "")
    assert commands.manage(*act, "--max-count", "5") == (0, EMPTY, "")
    for wrong in ("0", "-1", "x"):
        assert commands.manage(*act, f"--max-count={wrong}") == (
            127,
            "Must supply a positive value for max_count\n",
            "",
        )


def test_migrations_of_a_broken_database_fail(commands):
    commands.database.write_text("nothing of the kind")
    code, out, _ = commands.manage("db", "online_data_migrations")
    assert code == 2
    assert out.endswith(f"{EMPTY}Some migrations failed unexpectedly. Check log for details.\n")


def test_missing_command_shows_the_help(commands):
    assert commands.manage()[0] == 1
    code, out, _ = commands.manage("db")
    assert (code, "online_data_migrations" in out) == (0, True)
    assert commands.manage("db", "nothing")[0] == 2
    assert commands.manage("--version")[0] == 0
    assert commands.status()[0] == 2
    assert commands.status("wrong")[0] == 2


def test_configuration_comes_from_options_or_the_environment(commands):
    commands.manage("db", "sync")
    version = f"{SCHEMA_VERSION}\n"
    assert commands.run("manage", "db", "version")[0] == 1
    assert commands.run("manage", "--config-dir", commands.folder, "db", "version")[1] == version
    assert commands.run("manage", "db", "version", OS_PLACEMENT_CONFIG_DIR=str(commands.folder))[1] == version
    url = f"sqlite:///{commands.database}"
    assert commands.run("manage", "db", "version", OS_PLACEMENT_DATABASE__CONNECTION=url)[1] == version
    code, _, error = commands.run("manage", "--config-file", "none.conf", "db", "version")
    assert (code, error.partition("; ")[0]) == (
        1,
        "roost-placement-manage: none.conf: cannot be read: No such file or directory",
    )
    assert commands.run("manage", "--debug", "--log-file", "x", "--config-file", commands.conf, "db", "version")[0] == 0


def test_database_of_an_unknown_kind_is_refused_in_one_sentence(commands):
    commands.conf.write_text("[placement_database]\nconnection = oracle+cx://a:secret@b/c\n")
    code, _, error = commands.manage("db", "sync")
    assert code == 1
    assert "secret" not in error
    assert "oracle" in error


def test_upgrade_check_of_a_sound_database_succeeds(commands):
    commands.manage("db", "sync")
    assert commands.status("upgrade", "check") == (0, GOOD, "")
    code, out, _ = commands.status("upgrade", "check", "--json")
    assert (code, [each["result"] for each in json.loads(out)["checks"]]) == (0, [0, 0, 0])


def test_upgrade_check_warns_of_orphans_and_fails_on_missing_roots(commands):
    commands.manage("db", "sync")
    with contextlib.closing(sqlite3.connect(commands.database)) as connection:
        connection.execute("INSERT INTO allocation (consumer_id, inventory_id, amount) VALUES (7, 65537, 1)")
        connection.commit()
        code, out, _ = commands.status("upgrade", "check")
        assert (code, "Result: Warning" in out) == (1, True)
        names = [row[1] for row in connection.execute("PRAGMA table_info(provider)")]
        known = {"id": 1, "uuid": b"1" * 16, "name": "n", "root_id": 9}
        marks = ", ".join("?" * len(names))
        row = [known.get(name, None if name == "parent_id" else 0) for name in names]
        connection.execute(f"INSERT INTO provider ({', '.join(names)}) VALUES ({marks})", row)
        connection.commit()
    code, out, _ = commands.status("upgrade", "check")
    assert (code, "Result: Failure" in out) == (2, True)


def test_upgrade_check_fails_on_a_policy_in_json(commands):
    commands.manage("db", "sync")
    commands.conf.write_text(commands.conf.read_text() + "[oslo_policy]\npolicy_file = policy.json\n")
    assert commands.status("upgrade", "check")[0] == 0
    (commands.folder / "policy.json").write_text('{"placement:usages": "role:admin"}')
    code, out, _ = commands.status("upgrade", "check")
    assert (code, "Your policy file is JSON-formatted" in out) == (2, True)


def test_upgrade_check_of_an_unreadable_database_is_an_error(commands):
    code, _, error = commands.status("upgrade", "check")
    assert (code, error.startswith("roost-placement-status: ")) == (255, True)
