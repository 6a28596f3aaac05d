"""A slow, obvious model of running instances, one at a time."""


def outcomes(free_mib, *, count, wanted_mib, broken):
    """Return the host of each instance and whether the host accepts its message; None for an instance without a host.

    Args:
        free_mib: free memory by host, in list order.
        wanted_mib: memory of each instance.
        broken: hosts that fail on messages.
    """
    free, found = dict(free_mib), []
    for _ in range(count):
        fitting = [host for host in free if free[host] >= wanted_mib]
        if not fitting:
            found.append(None)
            continue
        # The first of several equally free hosts wins.
        chosen = max(fitting, key=free.__getitem__)
        free[chosen] -= wanted_mib
        found.append((chosen, chosen not in broken))
    return found
