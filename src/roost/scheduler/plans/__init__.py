"""Plans: moves of instances to make room for a request. Read ``make_room`` first.

``make_room``: the fewest moves to make room for a refused request, rehearsed by real decisions.
``room_search``: a depth-first search for such moves on a fork of the columns.
``leaving_sets``: the smallest sets of instances to leave a host.
``room_bounds``: hosts with room for a request after departures, and the missing amounts.
``board``: movable instances, and their moves on the columns, with undo.
"""
