from hypothesis import given
from hypothesis import strategies as st

from roost.simulator.lab.compact_search import Search
from roost.simulator.lab.compact_trial import Trial


def search_of(refused, *, bound, limit, refused_max=100):
    """Return a search, and the numbers that it tries; ``refused`` maps a number of hosts to refused requests."""
    tried = []

    def try_hosts(count):
        tried.append(count)
        return Trial(host_count=count, refused=refused(count), empty_hosts=0, is_finished=refused(count) <= refused_max)

    return Search(try_hosts, bound=bound, limit=limit), tried


@given(st.integers(1, 300), st.integers(0, 400), st.integers(0, 30))
def test_the_least_number_of_a_falling_series_is_found(bound, extra, refused_max):
    least = bound + extra
    search, tried = search_of(lambda count: max(0, least - count) * 31, bound=bound, limit=1000)
    found, other = search.find_all([refused_max, 0])
    assert found.host_count == other.host_count == least
    assert len(tried) == len(set(tried)) <= 30
    assert min(tried) >= bound


def test_smaller_numbers_that_serve_the_trace_are_found_although_a_larger_one_does_not():
    search, _ = search_of(lambda count: 0 if count in (97, 100) or count > 120 else 5, bound=60, limit=300)
    (found,) = search.find_all([0])
    assert found.host_count in (97, 100, 121)
    search, _ = search_of(lambda count: 0 if count == 119 or count > 120 else 5, bound=60, limit=300)
    (found,) = search.find_all([0])
    assert found.host_count == 119


def test_more_permitted_refusals_need_no_more_hosts():
    search, _ = search_of(lambda count: 200 - count, bound=60, limit=300)
    assert [trial.host_count for trial in search.find_all([0, 10, 50])] == [200, 190, 150]


def test_no_number_up_to_the_limit_may_suffice():
    search, tried = search_of(lambda _: 1, bound=60, limit=90)
    assert search.find_all([0]) == [None]
    assert max(tried) == 90
    search, tried = search_of(lambda _: 0, bound=91, limit=90)
    assert search.find_all([0]) == [None]
    assert tried == []


def test_a_trial_that_ended_early_serves_no_bound():
    search, _ = search_of(lambda count: 3 if count < 70 else 0, bound=60, limit=90, refused_max=2)
    assert [trial.host_count for trial in search.find_all([50])] == [70]
