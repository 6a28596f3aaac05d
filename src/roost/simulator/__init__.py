"""Simulation: workloads from traces and seeds, replays through a scheduler, and reports. Read ``replay`` first.

``workload``: a fleet, and requests and departures in order of time.
``traces``: workloads from files and seeds.
``replay``: runs a workload through a scheduler.
``report``: the report of a replay, as a value and as JSON.
``series``: samples during a replay, and the use of hosts.
``fragmentation``: free resources that no expected request can use.
``runs``: one run of a comparison, and the file of its result.
``workers``: parallel runs in processes.
``compare``: the figures of several policies over seeds.
``curves``: a figure during a replay, over several seeds.
``plots``: plots of replays.
``history_plots``: a plot of recorded requests under several settings.
``plot_style``: colours, lines, axes and legends of all plots.
``seeded_random``: repeatable seeds and uuids.
``stable_uuids``: uuids derived from names.
``lab``: published experiments, repeated with Roost's engine.
``demo_server``: a server with traffic, for the demo.
``cluster``: a simulated deployment with faults.
"""
