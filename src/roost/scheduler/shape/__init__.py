"""A shape: the compiled pipeline of similar requests. Read ``shape`` first.

``shape``: the pipeline: filter, weigh and rank.
``shape_cache``: compilation, and the cache of shapes.
``shape_verdicts``: checks of a shape, and their verdicts.
``shape_evidence``: evidence of a ranking: stages, scales, best hosts.
``score_table``: weighers, multipliers and scores.
``host_ranking``: result of a ranking.
``rejections``: rejection counts, updated host by host.
``candidate_choice``: choice among a host's candidates.
``own_hosts``: the hosts of one process, as a check.
``standings``: check or score of every host.
``scratch``: memory for temporary verdicts.
"""
