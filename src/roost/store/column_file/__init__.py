"""A column file: a copy of a whole database, from which a process opens a large fleet without reading all rows.

It is a cache. The database has a token for each file that is valid for it; after any doubt, a process reads all rows.
Read ``cached_load`` first.

``cached_load``: opens a file, checks it against the database, and adds the changes since.
``file_layout``: the header, the blocks, and the checksums of a file.
``part_codec``: the parts of a database as bytes.
``number_codec``: columns of numbers as bytes.
``file_place``: the path of a file, and the check of its owner and permissions.
``token_rows``: the tokens in the database.
``write_columns``: writes a file.
``vector_base``: the same check for a database on a server.
``column_schedule``: when to write a file, and the process that writes it.
"""
