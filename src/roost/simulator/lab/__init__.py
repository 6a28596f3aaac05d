"""The packing lab: published experiments, repeated with Roost's engine and its weighers. Read ``gpu_experiment`` first.

``gpu_experiment``: a fleet of GPUs that is filled until nothing fits: decisions, measurements.
``gpu_arrivals``: the pods in order of arrival, and their departures.
``gpu_pods``: the pods and nodes of the experiment, from tables.
``gpu_policies``: the published policies, as weighers.
``typical_pods``: the typical pods of a workload, and the GPUs that they cannot use.
``gpu_runs``: many runs in several processes, and the files of their results.
``gpu_comparison``: the table of all runs, beside published results.
``gpu_plots``: plots of the runs.
``compact_runs``: the least number of hosts for a trace, for several policies.
``compact_search``: the search for this number.
``compact_trial``: one trial of a number of hosts.
``compact_hosts``: the hosts of a trial, and the lower bound.
``compact_policies``: policies for virtual machines, as weighers.
``go_random``: random numbers as programs in Go draw them.
"""
