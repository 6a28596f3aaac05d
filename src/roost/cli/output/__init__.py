"""The output of all commands: its options, and the forms of lists and objects.

``output_options``: ``--output``, ``--columns``, ``--sort``, ``--limit`` and ``--watch``, and their evaluation.
``list_view``: the declaration of the columns of a list, and its rows as text or CSV.
``sections``: an object as readable sections.
``documents``: JSON and YAML.
``age``: times as ages.
"""
