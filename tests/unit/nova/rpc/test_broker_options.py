"""Options of nova.conf for brokers."""

import socket

import pytest

from roost.compat.ini import read_ini
from roost.errors import BadSettings
from roost.nova.rpc.broker_options import Broker, QuorumLimits, Tls, read_broker_options


@pytest.fixture
def read(tmp_path):
    """Return a function that reads options from the text of a nova.conf."""

    def read(text):
        path = tmp_path / "nova.conf"
        path.write_text(text)
        return read_broker_options(read_ini(path))

    return read


def brokers_of(options):
    return [(broker.host, broker.port, broker.user, broker.password) for broker in options.brokers]


def test_empty_file_has_the_defaults_of_oslo_messaging(read):
    options = read("")
    assert brokers_of(options) == [("localhost", 5672, "guest", "guest")]
    assert (options.virtual_host, options.host, options.control_exchange) == ("/", socket.gethostname(), "nova")
    assert (options.heartbeat_timeout_threshold, options.heartbeat_rate) == (60, 3)
    assert options.tls is None
    assert options.rabbit_transient_queues_ttl == 1800


@pytest.mark.parametrize(
    ("url", "brokers", "virtual_host"),
    [
        ("rabbit://a-user:b%40d%2F@h1:5673/nova", [("h1", 5673, "a-user", "b@d/")], "nova"),
        ("rabbit://a:1@h1:1,b:2@h2:2/", [("h1", 1, "a", "1"), ("h2", 2, "b", "2")], "/"),
        ("rabbit://a:1@[::1]:7,a:1@[fe80::2]/x%2Fy", [("::1", 7, "a", "1"), ("fe80::2", 5672, "a", "1")], "x/y"),
        ("rabbit://h1,h2:9//", [("h1", 5672, "guest", "guest"), ("h2", 9, "guest", "guest")], "/"),
        ("rabbit://a:p:q@h/", [("h", 5672, "a", "p:q")], "/"),
        ("rabbit://", [("localhost", 5672, "guest", "guest")], "/"),
    ],
)
def test_url_names_brokers_and_virtual_host(read, url, brokers, virtual_host):
    options = read(f"[DEFAULT]\ntransport_url = {url}\n")
    assert brokers_of(options) == brokers
    assert options.virtual_host == virtual_host


def test_address_of_ipv6_has_brackets():
    assert Broker(host="::1", port=7).address == "[::1]:7"


@pytest.mark.parametrize(
    "url",
    [
        "kafka://a:hunter2@h/",
        "fake:/",
        "rabbit:/a:hunter2@h",
        "rabbit://a:hunter2@h:x/",
        "rabbit://a:hunter2/x@h:1/",
        "rabbit://a:hunter2@h:70000/",
        "rabbit://a:hunter2@/",
        "rabbit://a:hunter2@[::1/",
        "a:hunter2@h",
    ],
)
def test_wrong_url_is_refused_without_its_password(read, url):
    with pytest.raises(BadSettings) as error:
        read(f"\n[DEFAULT]\ntransport_url = {url}\n")
    assert "nova.conf:3: DEFAULT.transport_url: must b" in str(error.value)
    assert "hunter2" not in str(error.value)


def test_password_is_in_no_representation(read):
    options = read("[DEFAULT]\ntransport_url = rabbit://a-user:hunter2@h1:5673/nova\n")
    assert "hunter2" not in repr(options)
    assert "a-user" not in repr(options)


def test_options_of_queues_and_heartbeats_are_read(read):
    options = read(
        "[DEFAULT]\nhost = ctl1\nrpc_response_timeout = 90\ncontrol_exchange = other\n"
        "[oslo_messaging_rabbit]\namqp_durable_queues = true\namqp_auto_delete = yes\nrabbit_quorum_queue = on\n"
        "rabbit_quorum_delivery_limit = 3\nrabbit_quorum_max_memory_length = 4\nrabbit_quorum_max_memory_bytes = 5\n"
        "rabbit_transient_quorum_queue = 1\nrabbit_transient_queues_ttl = 60\nheartbeat_timeout_threshold = 0\n"
        "heartbeat_rate = 2\nrabbit_retry_interval = 2\nrabbit_retry_backoff = 0\nrabbit_interval_max = 5\n"
        "kombu_reconnect_timeout = 9\nrabbit_login_method = PLAIN\nssl_version = TLSv1\n"
    )
    assert (options.host, options.rpc_response_timeout, options.control_exchange) == ("ctl1", 90, "other")
    assert options.amqp_durable_queues
    assert options.amqp_auto_delete
    assert options.rabbit_quorum_queue
    assert options.rabbit_transient_quorum_queue
    assert options.quorum_limits == QuorumLimits(delivery_limit=3, max_memory_length=4, max_memory_bytes=5)
    assert (options.rabbit_transient_queues_ttl, options.heartbeat_timeout_threshold) == (60, 0)
    assert (options.rabbit_retry_interval, options.rabbit_retry_backoff, options.rabbit_interval_max) == (2, 0, 5)
    assert (options.missing_queue_s, options.login_method) == (9, "PLAIN")


def test_tls_is_chosen_by_scheme_or_option(read):
    assert read("[DEFAULT]\ntransport_url = rabbit+ssl://h/\n").tls == Tls()
    options = read(
        "[oslo_messaging_rabbit]\nssl = true\nssl_ca_file = /ca\nssl_cert_file = /cert\nssl_key_file = /key\n"
        "ssl_enforce_hostname_verification = false\n"
    )
    assert options.tls == Tls(ca_file="/ca", cert_file="/cert", key_file="/key", verifies_host=False)
    assert read("[oslo_messaging_rabbit]\nkombu_ssl_ca_certs = /ca\nrabbit_use_ssl = yes\n").tls == Tls(ca_file="/ca")


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("use_queue_manager = true", "is not supported"),
        ("rabbit_stream_fanout = true", "is not supported"),
        ("kombu_compression = gzip", "is not supported"),
        ("ssl = maybe", "must be true or false, got 'maybe'"),
        ("heartbeat_rate = x", "must be a whole number of at least 0, got 'x'"),
        ("rabbit_retry_interval = 0", "must be a whole number of at least 1, got '0'"),
        ("rabbit_login_method = GSSAPI", "must be one of AMQPLAIN, PLAIN, EXTERNAL, got 'GSSAPI'"),
        ("ssl_ca_file = $missing", "refers to $missing, which is not set"),
    ],
)
def test_wrong_option_is_named_with_its_place(read, line, problem):
    text = f"[oslo_messaging_rabbit]\n{line}\n"
    if line.startswith("ssl_ca"):
        text += "ssl = true\n"
    with pytest.raises(BadSettings) as error:
        read(text)
    assert f"nova.conf:2: oslo_messaging_rabbit.{line.split()[0]}: " in str(error.value)
    assert problem in str(error.value)


def test_options_in_the_url_have_precedence(read):
    url = "rabbit://a:1@h/nova?ssl=1&ssl_ca_file=%2Fetc%2Fca&heartbeat_rate=5&unknown=1"
    options = read(f"[DEFAULT]\ntransport_url = {url}\n[oslo_messaging_rabbit]\nssl = false\nheartbeat_rate = 2\n")
    assert options.tls == Tls(ca_file="/etc/ca")
    assert (options.heartbeat_rate, options.virtual_host) == (5, "nova")
    with pytest.raises(BadSettings, match=r"nova.conf:2: DEFAULT.transport_url: ssl must be true or false$"):
        read("[DEFAULT]\ntransport_url = rabbit://a:hunter2@h/?ssl=x\n")
    with pytest.raises(BadSettings, match="is not supported"):
        read("[DEFAULT]\ntransport_url = rabbit://a:hunter2@h/?rabbit_stream_fanout=1\n")


def test_unsupported_option_may_be_off(read):
    read("[oslo_messaging_rabbit]\nuse_queue_manager = false\nkombu_compression =\nrabbit_stream_fanout = 0\n")


def test_mirrored_and_quorum_queues_exclude_each_other(read):
    with pytest.raises(BadSettings, match="cannot be used with rabbit_quorum_queue"):
        read("[oslo_messaging_rabbit]\nrabbit_ha_queues = true\nrabbit_quorum_queue = true\n")
