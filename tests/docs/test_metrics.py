from pathlib import Path

import prometheus_client.metrics
import pytest

from roost.observe import metrics

TEXT = (Path(__file__).parents[2] / "docs" / "placement-server.md").read_text(encoding="utf-8")
KINDS = prometheus_client.metrics.MetricWrapperBase


@pytest.mark.parametrize("name", sorted(name for name, value in vars(metrics).items() if isinstance(value, KINDS)))
def test_metric_is_documented_by_its_exported_name(name):
    (family,) = getattr(metrics, name).describe()
    assert f"`{family.name}{'_total' if family.type == 'counter' else ''}`" in TEXT
