"""A server on a broker with TLS."""

import pytest
from msgspec.structs import replace

from roost.nova.rpc.broker_options import Broker as BrokerAddress
from roost.nova.rpc.broker_options import Tls
from roost.nova.rpc.rpc_server import RpcServer
from tests.nova.rpc_callers import Caller, options_for, served
from tests.support.missing_programs import skip_test
from tests.support.servers import rabbitmq
from tests.support.servers.certificates import Authority, needs_openssl
from tests.support.wait import wait_until

pytestmark = [pytest.mark.long, needs_openssl]


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("ca"))


@pytest.fixture(scope="module")
def tls_broker(authority):
    """Yield a broker with a certificate for localhost."""
    if rabbitmq.IS_MISSING:
        skip_test(rabbitmq.MISSING)
    with rabbitmq.broker(tls=(authority.cert, *authority.issue("broker", names=["localhost"]))) as server:
        yield server


@pytest.fixture
def tls_options(tls_broker):
    return options_for(tls_broker, brokers=(BrokerAddress(host="localhost", port=tls_broker.tls_port),))


@pytest.mark.parametrize("verifies", [True, False])
def test_calls_pass_through_tls(tls_broker, tls_options, service, authority, verifies):
    tls = Tls(ca_file=str(authority.cert)) if verifies else Tls()
    options = replace(tls_options, tls=tls, heartbeat_timeout_threshold=2)
    caller = Caller(tls_broker, options, service.topic)
    with served(options, service) as server:
        for size in (1, 20_000, 1_000_000):  # One frame, several records of TLS, several frames.
            assert caller.call("echo", {"text": "x" * size})["result"] == {"text": "x" * size}
        identifiers = [caller.send("echo", {"number": number}) for number in range(300)]
        for number, identifier in enumerate(identifiers):
            assert caller.wait(identifier)[-1]["result"] == {"number": number}
        assert server.state.reconnects == 0
    caller.close()


def test_broker_of_another_authority_is_refused(tls_options, service, tmp_path):
    other = Authority(tmp_path, "other")
    server = RpcServer(replace(tls_options, tls=Tls(ca_file=str(other.cert))), service)
    server.start()
    wait_until(lambda: server.state.last_error)
    server.stop(0)
    assert "certificate verify failed" in server.state.last_error
