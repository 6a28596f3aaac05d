"""Plans: moves of instances, rehearsed by real decisions. Read ``make_room`` first.

``make_room``: the fewest moves to make room for a refused request.
``consolidate``: moves to empty as many hosts as possible.
``drain_hosts``: moves to empty given hosts.
``balance``: moves to make the used shares of hosts more equal.
``room_search``: a depth-first search for moves to make room, on a fork of the columns.
``leaving_sets``: the smallest sets of instances to leave a host.
``room_bounds``: hosts with room for a request after departures, and the missing amounts.
``empty_hosts``: empty hosts one after the other, on a fork of the columns.
``ways_out``: ways of instances to leave their hosts.
``fleet_use``: the hosts in view of a plan, and their used amounts.
``rehearsal``: rehearse a plan, and describe its moves.
``board``: movable instances, and their moves on the columns, with undo.
"""
