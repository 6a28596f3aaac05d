import sys

import pytest

from roost.errors import BadSettings
from roost.model.settings.monitoring_settings import Monitoring
from roost.observe.traces import current_tracer, send_traces


def test_traces_are_off_by_default():
    with send_traces(Monitoring()):
        assert current_tracer() is None


def test_tracer_exists_within_the_block_only():
    with send_traces(Monitoring(has_traces=True)):
        assert current_tracer() is not None
    assert current_tracer() is None


def test_missing_package_is_a_problem_of_the_setting(monkeypatch):
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    with (
        pytest.raises(BadSettings, match=r"monitoring\.has_traces: traces need OpenTelemetry: install Roost with"),
        send_traces(Monitoring(has_traces=True)),
    ):
        pass
