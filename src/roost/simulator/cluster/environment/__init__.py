"""State that all parts of a simulation share: time, chance, faults, and data that outlives a process.

``event_queue``: pending events, the virtual clock, and the trace.
``trouble``: injected faults and their rates.
``rare_faults``: further faults, only of the seeds from 1,000 to 3,199.
``troubled_store``: a store whose commits may fail, and which can be restored from a backup.
``restored_backup``: the restore of a backup, and the guests that the restored database does not know.
``guest_shelf``: the guests of the fake drivers.
``shared_state``: all of these for one simulation.
"""
