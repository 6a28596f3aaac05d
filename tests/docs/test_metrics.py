from pathlib import Path

import prometheus_client.metrics
import pytest

from roost.observe import metrics

TEXT = (Path(__file__).parents[2] / "docs" / "placement-server.md").read_text(encoding="utf-8")
KINDS = prometheus_client.metrics.MetricWrapperBase


@pytest.mark.parametrize("name", sorted(name for name, value in vars(metrics).items() if isinstance(value, KINDS)))
def test_a_metric_is_described_by_the_name_under_which_it_is_read(name):
    (family,) = getattr(metrics, name).describe()
    assert f"`{family.name}{'_total' if family.type == 'counter' else ''}`" in TEXT
