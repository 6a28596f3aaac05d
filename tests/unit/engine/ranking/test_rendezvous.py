import numpy as np

from roost.engine.ranking.rendezvous import owners, weights


def test_the_highest_weight_owns_a_host():
    ids = np.arange(1, 200, dtype=np.int64)
    best = owners(ids, [3, 8, 11])
    table = np.array([weights(ids, process) for process in (3, 8, 11)])
    assert best.tolist() == table.argmax(axis=0).tolist()
    assert set(best.tolist()) == {0, 1, 2}


def test_weights_are_those_of_every_version():
    # The numbers must not change: processes of different versions share a fleet.
    assert weights(np.array([1, 2], dtype=np.int64), 7).tolist() == [4414019431610648415, 5090977316425868581]
