"""Workloads from files and seeds. Read ``formats`` first.

``formats``: recognises the files of a trace by their headers.
``table``: CSV files as tables.
``openb``: Alibaba's GPU cluster trace.
``cospot``: Azure's packing trace, with concrete sizes.
``huawei``: Huawei's dataset for topology-aware placement.
``generated_workload``: workloads from a seed.
``generated_fleet``: the hosts of generated workloads.
``generated_requests``: the requests of generated workloads.
``filling_requests``: requests that fill a generated fleet.
"""
