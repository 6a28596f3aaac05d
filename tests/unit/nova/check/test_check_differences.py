import pytest

from roost.compat.ini import read_ini
from roost.model.settings.nova_settings import Nova
from roost.nova.check.check_differences import check_differences


@pytest.fixture
def lines(tmp_path):
    """Return a function that returns the findings for a nova.conf."""

    def lines(text, **settings):
        path = tmp_path / "nova.conf"
        path.write_text(text)
        return [(each.level, each.found) for each in check_differences(read_ini(path), Nova(**settings))]

    return lines


def test_defaults_have_no_difference(lines):
    assert lines("[oslo_messaging_notifications]\ndriver = noop\n[scheduler]\nworkers = 2\n") == []


def test_discovery_of_hosts_unless_roost_does_it(lines):
    text = "[scheduler]\ndiscover_hosts_in_cells_interval = 300\n"
    assert lines(text) == [("warning", "nova-scheduler maps new hosts to cells every 300 s, Roost does not")]
    assert lines(text, discovers_hosts=True) == []
    assert lines(text.replace("300", "-1")) == []


@pytest.mark.parametrize("section", ["[oslo_messaging_notifications]\ndriver", "[DEFAULT]\nnotification_driver"])
def test_notifications_that_roost_cannot_send(lines, section):
    found = lines(f"{section} = messagingv2\ndriver = log\nnotification_driver = log\n")
    assert found == [("warning", "nova-scheduler sends notifications with driver log, Roost does not")]
    assert lines(f"{section} = messagingv2\n") == []


def test_password_with_a_dollar_is_no_finding_here(lines):
    assert lines("[oslo_messaging_notifications]\ndriver = $missing\n") == []
