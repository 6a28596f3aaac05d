"""The check of a real broker, without a trace on it."""

from contextlib import contextmanager

import amqp
import pytest
from msgspec.structs import replace

from roost.nova.check.check_broker import check_broker
from roost.nova.rpc.broker_options import Broker as BrokerAddress
from roost.nova.rpc.broker_options import BrokerOptions, Tls
from tests.nova.rpc_callers import Service, served
from tests.support.missing_programs import skip_test
from tests.support.servers import rabbitmq
from tests.support.servers.certificates import Authority, needs_openssl
from tests.support.wait import wait_until

pytestmark = pytest.mark.long
TIMEOUT_S = 5.0
PASSWORD = "s3cret"


@pytest.fixture(scope="module")
def host(shared_broker):
    """Return the name of a virtual host of this file."""
    shared_broker.add_virtual_host("check")
    return "check"


@pytest.fixture
def options(broker, host):
    """Yield options for the virtual host, which is empty before and after the test."""
    options = BrokerOptions(brokers=(address(broker.port),), virtual_host=host, host="one")
    yield options
    with connect(options) as channel:
        for queue in ("scheduler", "scheduler.one"):
            channel.queue_delete(queue)
        channel.exchange_delete("nova")


def address(port, **more):
    return BrokerAddress(host="127.0.0.1", port=port, **more)


@contextmanager
def connect(options):
    """Yield a channel on the virtual host of some options."""
    broker = options.brokers[0]
    connection = amqp.Connection(host=broker.address, virtual_host=options.virtual_host, login_method="AMQPLAIN")
    connection.connect()
    yield connection.channel()
    connection.close()


def lines(options):
    return [(each.level, each.found) for each in check_broker(options, timeout_s=TIMEOUT_S)]


def declare(channel, *, is_durable=False, messages=0):
    channel.exchange_declare("nova", "topic", durable=is_durable, auto_delete=False)
    channel.queue_declare("scheduler", durable=is_durable, auto_delete=False)
    channel.queue_bind("scheduler", "nova", "scheduler")
    for _ in range(messages):
        channel.basic_publish(amqp.Message("{}"), "nova", "scheduler")


def test_served_queue_is_ok(broker, options):
    with served(options, Service(topic="scheduler")):
        assert lines(options) == [
            ("ok", f"127.0.0.1:{broker.port}: login works, virtual host check, without TLS"),
            ("ok", "exchange nova exists, with the flags of the options"),
            ("ok", "queue scheduler exists, with the flags of the options: 1 consumer, 0 messages"),
        ]


def test_empty_virtual_host_stays_empty(options):
    for _ in range(2):  # The first check creates nothing that the second would find.
        assert lines(options)[1:] == [
            ("warning", "exchange nova does not exist"),
            ("warning", "queue scheduler does not exist"),
        ]


def test_other_flags_are_warnings(options):
    with connect(options) as channel:
        declare(channel, is_durable=True)
    found = lines(options)[1:]
    assert [level for level, _ in found] == ["warning", "warning"]
    assert found[0][1].startswith(
        "exchange nova differs from the options: PRECONDITION_FAILED - inequivalent arg 'durable'"
    )
    assert found[1][1].startswith("queue scheduler differs from the options: ")
    assert found[1][1].endswith(": 0 consumers, 0 messages")
    assert [level for level, _ in lines(replace(options, amqp_durable_queues=True))] == ["ok"] * 3


def test_messages_without_consumer_are_a_warning(options):
    with connect(options) as channel:
        declare(channel, messages=2)
    wait_until(lambda: lines(options)[3:] == [("warning", "queue scheduler: 2 messages and no consumer")])
    assert lines(options)[2] == (
        "ok",
        "queue scheduler exists, with the flags of the options: 0 consumers, 2 messages",
    )


def test_wrong_password_and_virtual_host_are_errors(broker, options):
    wrong = replace(options, brokers=(address(broker.port, password=PASSWORD),))
    assert lines(wrong) == [("error", f"127.0.0.1:{broker.port}: the login is refused")]
    ((level, problem),) = lines(replace(options, virtual_host="nowhere"))
    assert level == "error"
    assert problem.startswith(f"127.0.0.1:{broker.port}: no access to the virtual host nowhere: ")
    assert PASSWORD not in str(check_broker(wrong, timeout_s=TIMEOUT_S))


def test_lost_broker_is_an_error_or_a_warning_beside_others(broker, options):
    lost = address(1)
    ((level, problem),) = lines(replace(options, brokers=(lost,)))
    assert level == "error"
    assert problem.startswith("127.0.0.1:1: cannot be used: ConnectionRefusedError")
    both = lines(replace(options, brokers=(lost, address(broker.port))))
    assert [level for level, _ in both[:2]] == ["ok", "warning"]


def test_user_without_permissions(broker, options, host):
    with connect(options) as channel:
        declare(channel)
    broker.control("add_user", "limited", PASSWORD)
    broker.control("set_permissions", "-p", host, "limited", "^$", ".*", ".*")
    found = lines(replace(options, brokers=(address(broker.port, user="limited", password=PASSWORD),)))
    broker.control("delete_user", "limited")
    assert [level for level, _ in found] == ["ok", "warning", "warning"]
    assert "ACCESS_REFUSED" in found[1][1]


@needs_openssl
def test_tls(tmp_path):
    if rabbitmq.IS_MISSING:
        skip_test(rabbitmq.MISSING)
    authority, other = Authority(tmp_path), Authority(tmp_path, "other")
    with rabbitmq.broker(tls=(authority.cert, *authority.issue("broker", names=["localhost"]))) as server:
        options = BrokerOptions(brokers=(BrokerAddress(host="localhost", port=server.tls_port),), host="one")
        trusted = lines(replace(options, tls=Tls(ca_file=str(authority.cert))))
        assert trusted[0] == ("ok", f"localhost:{server.tls_port}: login works, virtual host /, with TLS")
        ((level, problem),) = lines(replace(options, tls=Tls(ca_file=str(other.cert))))
        assert level == "error"
        assert "certificate verify failed" in problem
        assert lines(replace(options, tls=Tls()))[0][1].endswith("with TLS, no certificate verified")
        ((level, _),) = lines(options)
        assert level == "error"
