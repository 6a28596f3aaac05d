"""A broker for the tests of Nova's message queue, one for each process of the test run."""

import uuid

import pytest

from tests.nova.rpc_callers import Caller, Service, options_for
from tests.support.missing_programs import skip_test
from tests.support.servers import rabbitmq


@pytest.fixture(scope="session")
def shared_broker():
    """Yield the broker of this process of the test run."""
    if rabbitmq.IS_MISSING:
        skip_test(rabbitmq.MISSING)
    with rabbitmq.broker() as server:
        yield server


@pytest.fixture
def broker(shared_broker):
    """Yield the broker; it runs again after a test that killed it."""
    yield shared_broker
    if not shared_broker.is_running:
        shared_broker.start()


@pytest.fixture
def options(broker):
    """Return options with an exchange of this test."""
    return options_for(broker)


@pytest.fixture
def service():
    """Return a service with a topic of this test."""
    return Service(topic=f"scheduler-{uuid.uuid4().hex[:8]}")


@pytest.fixture
def caller(broker, options, service):
    found = Caller(broker, options, service.topic)
    yield found
    found.close()
