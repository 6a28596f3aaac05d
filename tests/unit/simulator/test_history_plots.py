import pytest

from roost.model.evidence.comparison import Comparison, RecordedResult
from roost.model.settings.roost_settings import Settings
from roost.product import Roost
from roost.scheduler.comparison.policy_comparison import RecordQuery, Scenario
from roost.simulator.history_plots import draw
from roost.store.memory_store import MemoryStore
from tests.support.fleets.products import fleet, request
from tests.unit.simulator.pictures import size_of

pytestmark = pytest.mark.long


def compared(*, requests):
    roost = Roost(MemoryStore(), Settings())
    roost.install(fleet(3, vcpus=8))
    for _ in range(requests):
        roost.decide(request(2))
    sets = {"one": Scenario(Settings()), "two": Scenario(Settings())}
    return roost.compare(sets, RecordQuery(newest=50, has_hosts=True), is_late=lambda: False)


def test_plot_is_a_picture_and_equal_comparisons_are_equal_files(tmp_path):
    comparison = compared(requests=14)
    first = draw(comparison, tmp_path / "a")
    assert first.name == "history.png"
    assert size_of(first) == (1200, 800)
    assert draw(comparison, tmp_path / "b").read_bytes() == first.read_bytes()
    assert draw(compared(requests=5), tmp_path / "c").read_bytes() != first.read_bytes()


def test_comparison_without_requests_is_drawn(tmp_path):
    comparison = compared(requests=0)
    assert isinstance(comparison, Comparison)
    assert comparison.recorded == RecordedResult(granted=0, refused=0, instances=0)
    assert size_of(draw(comparison, tmp_path)) == (1200, 800)
