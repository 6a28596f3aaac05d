"""The footprint of a batch: the rows to read from a database before Python code can judge the batch."""

Value = int | float | str | bytes | None
Values = tuple[Value, ...]


class Footprint:
    """Keys of rows, by table and key columns."""

    def __init__(self) -> None:
        self.lookups: dict[tuple[str, tuple[str, ...]], set[Values]] = {}
        self.stock_ids: set[int] = set()  # single inventories, and generations
        self.place_keys: set[tuple[int, int]] = set()
        self.whole_providers: set[int] = set()  # providers whose inventories are all needed
        self.trees: set[int] = set()  # providers whose whole tree is needed
        self.whole_classes: set[int] = set()  # classes whose inventories are all needed
        self.whole_traits: set[int] = set()  # traits whose providers are all needed
        self.joined_groups: set[int] = set()  # server groups that must exist
        self.dropped_groups: set[int] = set()  # server groups whose places and instances are all needed
        self.is_structural = False  # whether the batch has more than claims and releases

    def add(self, table: str, columns: str, *values: Value) -> None:
        """Add the rows of ``table`` with these values in these columns.

        Args:
            columns: their names, separated by blanks.
        """
        self.lookups.setdefault((table, tuple(columns.split())), set()).add(values)
