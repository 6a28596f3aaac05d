"""Errors of a process whose state belongs to another history of the database: it reloads."""

from roost.errors import StoreReplaced


class DatabaseRestored(StoreReplaced):
    """The database was restored from a backup since this process read it."""

    def __init__(self) -> None:
        super().__init__("the database was restored from a backup, and is being reloaded: try again")


class ServerReplaced(StoreReplaced):
    """Another server became the primary since this process read the database."""

    def __init__(self) -> None:
        super().__init__("another database server took over, and the database is being reloaded: try again")


class ChangesLost(StoreReplaced):
    """The database does not have some known changes of this process."""

    def __init__(self) -> None:
        super().__init__("the database lost changes, and is being reloaded: try again")
