import pytest

from roost.compat.ini import read_ini
from roost.compat.placement_conf import read_placement_conf
from roost.errors import BadFile


@pytest.fixture
def written(tmp_path):
    def write(text):
        path = tmp_path / "placement.conf"
        path.write_text(text)
        return path

    return write


def test_options_may_be_repeated_go_on_in_the_next_line_and_name_others(written):
    ini = read_ini(
        written("""
# a comment
; another
[DEFAULT]
state_path = /var/lib
[a]
list = one, two
list = three
long = first
    second
\tthird
quoted = "  x "
colon: y = z
empty =
path = $state_path/${a.empty}x/$$5/\\$6
[b]
other = 1
[a]
more = 2
""")
    )
    assert ini.all("a", "list") == ["one", "two", "three"]
    assert ini.get("a", "list") == "three"
    assert ini.get("a", "long") == "first\nsecond\nthird"
    assert ini.get("a", "quoted") == "  x "
    assert ini.get("a", "colon") == "y = z"
    assert ini.get("a", "empty") == ""
    assert ini.get("a", "path") == "/var/lib/x/$5/$6"
    assert (ini.get("a", "more"), ini.get("b", "other"), ini.get("c", "x")) == ("2", "1", None)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a = 1", ":1: an option has no section"),
        ("[a]\nb", ":2: is neither OPTION = VALUE nor"),
        ("[a", ":1: a section is not closed"),
        ("[]", ":1: a section is not closed, or has no name"),
        ("  x", ":1: this line continues no option"),
        ("[a]\n\n b", ":3: this line continues no option"),
    ],
)
def test_a_line_that_cannot_be_understood_is_named(written, text, problem):
    with pytest.raises(BadFile) as caught:
        read_ini(written(text))
    assert problem in str(caught.value)


def test_a_file_that_cannot_be_read_is_named(tmp_path):
    with pytest.raises(BadFile, match="cannot be read"):
        read_ini(tmp_path / "absent")
    (tmp_path / "latin").write_bytes(b"\xff")
    with pytest.raises(BadFile, match="not UTF-8"):
        read_ini(tmp_path / "latin")


@pytest.mark.parametrize("value", ["$absent", "$a", "${x.y}"])
def test_a_name_that_stands_for_nothing_is_named(written, value):
    ini = read_ini(written(f"[s]\na = {value}"))
    with pytest.raises(BadFile, match="which is not set"):
        ini.get("s", "a")


def test_an_existing_file_becomes_settings(written):
    conf = read_placement_conf(
        written("""
[api]
auth_strategy = noauth2
[placement_database]
connection = postgresql+psycopg2://u:p@h/d
sync_on_startup = True
[oslo_policy]
policy_file = own.yaml
enforce_new_defaults = no
[cors]
allowed_origin = http://a,http://b
max_age = 10
[placement]
randomize_allocation_candidates = true
max_allocation_candidates = 100
incomplete_consumer_project_id = x
""")
    )
    assert conf.connection == "postgresql://u:p@h/d"
    assert conf.settings.pop("policy_file").endswith("/own.yaml")
    assert conf.settings == {
        "auth_strategy": "noauth2",
        "sync_on_startup": True,
        "enforce_new_defaults": False,
        "cors_allowed_origin": ["http://a", "http://b"],
        "cors_max_age": 10,
        "randomize_allocation_candidates": True,
        "max_allocation_candidates": 100,
        "incomplete_consumer_project_id": "x",
    }
    assert conf.notes == []


def test_what_has_no_effect_is_named_each_once(written):
    conf = read_placement_conf(
        written("""
[DEFAULT]
debug = true
[placement_database]
max_retries = 3
max_retries = 4
[oslo_policy]
enforce_scope = false
[keystone_authtoken]
password = secret
""")
    )
    assert [note.partition(": ")[2] for note in conf.notes] == [
        "[DEFAULT] debug has no effect: nothing here needs it",
        "[placement_database] max_retries has no effect: nothing here needs it",
        "[oslo_policy] enforce_scope has no effect: a token for the whole system is always refused",
    ]


def test_without_a_word_about_it_keystone_is_asked_as_that_file_means(written):
    path = written("[placement]\n")
    assert read_placement_conf(path).settings == {"auth_strategy": "keystone", "keystone_file": str(path)}


def test_policies_beside_the_file_are_found(written):
    path = written("[api]\nauth_strategy = noauth2\n")
    (path.parent / "policy.yaml").write_text("")
    assert read_placement_conf(path).settings["policy_file"] == str(path.parent / "policy.yaml")


@pytest.mark.parametrize(
    ("url", "ours"),
    [
        ("sqlite:////var/p.sqlite", "sqlite:////var/p.sqlite"),
        ("sqlite:///p.sqlite?timeout=3", "sqlite:///p.sqlite"),
        ("postgresql://h/d?sslmode=require", "postgresql://h/d?sslmode=require"),
        ("mysql+pymysql://u:secret@h/d", None),
        ("sqlite://", None),
        ("nonsense", None),
    ],
)
def test_a_connection_is_named_as_ours_or_why_not(written, url, ours):
    conf = read_placement_conf(written(f"[placement_database]\nconnection = {url}"))
    assert conf.connection == ours
    assert (conf.problem is None) == (ours is not None)
    assert "secret" not in (conf.problem or "")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[placement_database]\nsync_on_startup = maybe", "must be true or false, got 'maybe'"),
        ("[cors]\nmax_age = long", "must be a whole number, got 'long'"),
    ],
)
def test_a_wrong_value_is_named(written, text, problem):
    with pytest.raises(BadFile) as caught:
        read_placement_conf(written(text))
    assert problem in str(caught.value)
