"""Options of nova.conf for notifications."""

import pytest

from roost.compat.ini import read_ini
from roost.errors import BadSettings
from roost.nova.notifications.notification_options import find_foreign, read_notification_options

DRIVER = "[oslo_messaging_notifications]\ndriver = messagingv2\n"


@pytest.fixture
def ini(tmp_path):
    """Return a function that parses the text of a nova.conf."""

    def ini(text):
        path = tmp_path / "nova.conf"
        path.write_text(text)
        return read_ini(path)

    return ini


@pytest.fixture
def read(ini):
    """Return a function that reads options from a text."""
    return lambda text: read_notification_options(ini(text))


@pytest.mark.parametrize("text", ["", DRIVER.replace("messagingv2", "noop"), DRIVER.replace("messagingv2", "log")])
def test_without_a_driver_nothing_is_sent(read, text):
    assert read(text + "[notifications]\nnotification_format = both\n") is None


def test_defaults_are_those_of_nova(read):
    options = read(DRIVER + "[DEFAULT]\ntransport_url = rabbit://h1\nhost = ctl1\n")
    assert (options.envelopes, options.topics, options.versioned_topics) == ((True,), ("notifications",), ())
    assert [(each.address, options.broker.host) for each in options.broker.brokers] == [("h1:5672", "ctl1")]


@pytest.mark.parametrize(
    ("form", "topics", "versioned"),
    [("unversioned", ("a", "b"), ()), ("versioned", (), ("v", "w")), ("both", ("a", "b"), ("v", "w"))],
)
def test_format_chooses_the_topics(read, form, topics, versioned):
    options = read(
        f"{DRIVER}topics = a, b\n[notifications]\nnotification_format = {form}\nversioned_notifications_topics = v,w\n"
    )
    assert (options.topics, options.versioned_topics) == (topics, versioned)


def test_names_of_older_files(read):
    options = read(
        "[DEFAULT]\nnotification_driver = messaging\nnotification_topics = old\nnotification_format = both\n"
    )
    assert (options.envelopes, options.topics) == ((False,), ("old",))
    assert options.versioned_topics == ("versioned_notifications",)


def test_several_drivers_each_once(read):
    options = read(DRIVER + "driver = messaging\ndriver = messagingv2\ndriver = log\n")
    assert options.envelopes == (False, True)


def test_brokers_of_their_own_with_options_in_the_url(read):
    options = read(f"{DRIVER}transport_url = rabbit+ssl://n:1@news:7/events?amqp_durable_queues=true\n")
    assert [(each.host, each.port, each.user) for each in options.broker.brokers] == [("news", 7, "n")]
    assert (options.broker.virtual_host, options.broker.amqp_durable_queues) == ("events", True)
    assert options.broker.tls is not None


def test_unknown_format_is_an_error(read):
    with pytest.raises(BadSettings, match=r"notifications.notification_format: must be one of .* got 'json'"):
        read("[notifications]\nnotification_format = json\n")


def test_error_in_the_url_shows_no_part_of_it(read):
    with pytest.raises(BadSettings) as error:
        read(f"{DRIVER}transport_url = rabbit://a:hunter2@h:port/\n")
    assert "nova.conf:3: oslo_messaging_notifications.transport_url: must be" in str(error.value)
    assert "hunter2" not in str(error.value)


def test_foreign_drivers_and_brokers_are_named(ini, read):
    text = f"{DRIVER}driver = routing\ndriver = log\ndriver = test\ntransport_url = kafka://a:hunter2@h:9092\n"
    assert find_foreign(ini(text)) == ["driver routing", "driver log", "a broker other than RabbitMQ"]
    assert read(text) is None
    assert find_foreign(ini(DRIVER)) == []
