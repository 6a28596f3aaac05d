"""Changes by clients: what a request changes, and who sent it.

``change_note``: the change that a request makes, and the kinds of changes.
``change_row``: the records of changes in the database.
"""
