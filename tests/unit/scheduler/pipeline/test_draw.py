"""Draws among the best hosts, or among all."""

import pytest

from roost.model.flavor import Flavor
from roost.model.settings.roost_settings import FilterScheduler
from roost.model.settings.roost_settings import Scheduler as SchedulerSettings
from roost.scheduler.framework.plugin import Rules
from roost.scheduler.pipeline.draw import Draw
from roost.scheduler.weighers.ram import Ram, RamOptions
from tests.support.fleets.crowds import Kind, ShapeProbe, crowd


@pytest.fixture
def shape():
    kinds = [Kind(vcpus=8, memory_mb=16 * (1 + row % 7)) for row in range(40)]
    return ShapeProbe(crowd(kinds), Flavor(name="f", memory_mb=20), Rules(filters=(), weighers=(Ram(RamOptions()),)))


def test_chance_driver_ranks_all_hosts_once_for_evidence_and_draw(shape):
    draw = Draw(SchedulerSettings(driver="chance"), FilterScheduler())
    ranking, few = draw.rank(shape.shape, 5), shape.fresh().rank(5)
    assert len(ranking.rows) == ranking.left == few.left
    evidence = shape.shape.evidence
    assert evidence.table(ranking) == evidence.table(few)
    assert (evidence.stages(ranking), evidence.scales(ranking)) == (evidence.stages(few), evidence.scales(few))


def test_chance_driver_draws_alike_from_any_ranking(shape):
    draw = Draw(SchedulerSettings(driver="chance"), FilterScheduler())
    drawn = [draw.draw_host(shape.shape, draw.rank(shape.shape, 5), seed=seed) for seed in range(60)]
    assert drawn == [draw.draw_host(shape.shape, shape.fresh().rank(5), seed=seed) for seed in range(60)]
    assert len(set(drawn)) > 20


def test_other_drivers_rank_the_best_hosts(shape):
    draw = Draw(SchedulerSettings(), FilterScheduler())
    ranking = draw.rank(shape.shape, 5)
    assert len(ranking.rows) == 5 < ranking.left
    assert draw.draw_host(shape.shape, ranking, seed=1) == ranking.rows[0]
