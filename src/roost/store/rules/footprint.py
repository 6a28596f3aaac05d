"""The rows that a verdict needs: the databases read them before they judge a batch in Python."""

Value = int | float | str | bytes | None
Values = tuple[Value, ...]


class Touched:
    """Keys of rows, by table and key columns."""

    def __init__(self) -> None:
        self.lookups: dict[tuple[str, tuple[str, ...]], set[Values]] = {}
        self.stock_ids: set[int] = set()  # single inventories, and generations
        self.place_keys: set[tuple[int, int]] = set()
        self.whole_providers: set[int] = set()  # providers whose inventories are all needed
        self.trees: set[int] = set()  # providers whose whole tree is needed
        self.offered: set[int] = set()  # classes whose inventories are all needed
        self.worn: set[int] = set()  # traits whose providers are all needed
        self.is_structural = False  # whether there is more than claims and releases

    def look(self, table: str, columns: str, *values: Value) -> None:
        """Add the row(s) of ``table`` with these values in these blank-separated columns."""
        self.lookups.setdefault((table, tuple(columns.split())), set()).add(values)
