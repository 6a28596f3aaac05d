"""The order in which a search tries the providers of one tree, if a rule prefers some of them."""

from collections.abc import Callable, Mapping

from roost.engine.candidates.query import Demand

# Class id and amount -> cost by provider row; empty: no preference.
CostsOf = Callable[[int, int], Mapping[int, float]]

_WITHOUT_COST = float("inf")


class ProviderOrder:
    """Orders the providers that may serve a demand: cheapest first.

    Args:
        costs_of: returns the costs of an amount; called once for each class and amount.
    """

    __slots__ = ("_costs", "_costs_of")

    def __init__(self, costs_of: CostsOf) -> None:
        self._costs_of = costs_of
        self._costs: dict[tuple[int, int], Mapping[int, float]] = {}

    def sort(self, demand: Demand, rows: list[int]) -> list[int]:
        """Return provider rows, cheapest first: by the sum of their costs over the demand, then in the given order.

        A provider without a cost, such as a sharing one, comes after those with one.
        """
        if len(rows) < 2:
            return rows
        tables = [table for class_id, amount in demand if (table := self._table(class_id, amount))]
        if not tables:
            return rows
        if len(tables) == 1:
            costs = tables[0]
            if all(map(costs.__contains__, rows)):
                return sorted(rows, key=costs.__getitem__)
            return sorted(rows, key=lambda row: costs.get(row, _WITHOUT_COST))
        return sorted(rows, key=lambda row: sum(table.get(row, _WITHOUT_COST) for table in tables))

    def _table(self, class_id: int, amount: int) -> Mapping[int, float]:
        table = self._costs.get((class_id, amount))
        if table is None:
            table = self._costs[class_id, amount] = self._costs_of(class_id, amount)
        return table
