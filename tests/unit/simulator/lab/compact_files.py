"""Small traces of virtual machines for the lab's tests."""

HEADER = "vmId,tenantId,cores,ram,vmTypeId,starttime,endtime\n"


def trace(*vms):
    """Return a trace in the format of CoSpot: cores, ram, start and end of each virtual machine."""
    rows = (f"{number},1,{cores},{ram},0,{start},{end}" for number, (cores, ram, start, end) in enumerate(vms))
    return HEADER + "\n".join(rows) + "\n"


# On hosts of 8 cores, the second and the third machine need a host each at the same time, beside the first one.
TRACE = trace((3, 1, -1, "inf"), (6, 1, 0, 2), (6, 1, 1, 3), (8, 1, 4, "inf"), (1, 9, 5, "inf"))
