"""What becomes of instances that are to run, once more: slow, obvious, one instance at a time."""


def outcomes(free_mib, *, count, wanted_mib, broken):
    """Say of each instance which host it is sent to and whether that host takes the message; None: it has no host.

    Args:
        free_mib: memory by host, in the order in which hosts are listed.
        wanted_mib: by each instance.
        broken: hosts that take no messages.
    """
    free, found = dict(free_mib), []
    for _ in range(count):
        fitting = [host for host in free if free[host] >= wanted_mib]
        if not fitting:
            found.append(None)
            continue
        # Of equally free hosts the first.
        chosen = max(fitting, key=free.__getitem__)
        free[chosen] -= wanted_mib
        found.append((chosen, chosen not in broken))
    return found
