import pytest

from roost.compat.ini import read_ini
from roost.compat.placement_conf import read_placement_conf
from roost.errors import BadSettings


@pytest.fixture
def write_conf(tmp_path):
    def write(text):
        path = tmp_path / "placement.conf"
        path.write_text(text)
        return path

    return write


def test_options_may_repeat_continue_and_refer_to_others(write_conf):
    ini = read_ini(
        write_conf("""
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
    assert ini.get_list("a", "list") == ["one", "two", "three"]
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
def test_malformed_line_is_named(write_conf, text, problem):
    with pytest.raises(BadSettings) as caught:
        read_ini(write_conf(text))
    assert problem in str(caught.value)


def test_unreadable_file_is_named(tmp_path):
    with pytest.raises(BadSettings, match="cannot be read"):
        read_ini(tmp_path / "absent")
    (tmp_path / "latin").write_bytes(b"\xff")
    with pytest.raises(BadSettings, match="not UTF-8"):
        read_ini(tmp_path / "latin")


@pytest.mark.parametrize("value", ["$absent", "$a", "${x.y}"])
def test_reference_to_an_unset_option_is_an_error(write_conf, value):
    ini = read_ini(write_conf(f"[s]\na = {value}"))
    with pytest.raises(BadSettings, match="which is not set"):
        ini.get("s", "a")


def test_placement_conf_becomes_settings(write_conf):
    conf = read_placement_conf(
        write_conf("""
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


def test_options_without_effect_are_each_reported_once(write_conf):
    conf = read_placement_conf(
        write_conf("""
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
        "[DEFAULT] debug has no effect: Roost does not need it",
        "[placement_database] max_retries has no effect: Roost does not need it",
        "[oslo_policy] enforce_scope has no effect: a token for the whole system is always refused",
    ]


def test_auth_strategy_defaults_to_keystone_with_this_file(write_conf):
    path = write_conf("[placement]\n")
    assert read_placement_conf(path).settings == {"auth_strategy": "keystone", "keystone_file": str(path)}


def test_policy_file_beside_placement_conf_is_found(write_conf):
    path = write_conf("[api]\nauth_strategy = noauth2\n")
    (path.parent / "policy.yaml").write_text("")
    assert read_placement_conf(path).settings["policy_file"] == str(path.parent / "policy.yaml")


@pytest.mark.parametrize(
    ("url", "ours"),
    [
        ("sqlite:////var/p.sqlite", "sqlite:////var/p.sqlite"),
        ("sqlite:///p.sqlite?timeout=3", "sqlite:///p.sqlite"),
        ("postgresql://h/d?sslmode=require", "postgresql://h/d?sslmode=require"),
        ("mysql+pymysql://u:secret@h/d?charset=utf8", "mysql://u:secret@h/d?charset=utf8"),
        ("mysql+mysqldb://u:secret@h1,h2:3307/d", "mysql://u:secret@h1,h2:3307/d"),
        ("oracle+cx://u:secret@h/d", None),
        ("sqlite://", None),
        ("nonsense", None),
    ],
)
def test_connection_is_translated_or_refused_with_a_reason(write_conf, url, ours):
    conf = read_placement_conf(write_conf(f"[placement_database]\nconnection = {url}"))
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
def test_invalid_value_is_a_clear_error(write_conf, text, problem):
    with pytest.raises(BadSettings) as caught:
        read_placement_conf(write_conf(text))
    assert problem in str(caught.value)
