from roost.model.writes import RaiseGeneration
from roost.ports import Store
from tests.contract.stores import commit, generations, item, provider


def test_generation_is_raised_only_from_its_current_value(store: Store) -> None:
    assert commit(store, item(provider(1))) == [""]
    refused = [item(RaiseGeneration(*row)) for row in ((1, 5, 5), (1, 0, 0), (1, 0, -1), (44, 0, 1))]
    assert commit(store, *refused) == ["generation", "generation", "generation", "missing"]
    assert commit(store, item(RaiseGeneration(1, 0, 41)), item(RaiseGeneration(1, 41, 1))) == ["", ""]
    assert generations(store)[1] == 42
