"""Plans: moves of instances that make room for a request. Read ``make_room`` first.

``make_room``: the fewest moves after which a refused request fits, rehearsed by real decisions.
``room_search``: a depth-first search for such moves on a fork of the columns.
``leaving_sets``: the sets of instances whose departure makes a host fit.
``room_bounds``: hosts that would take a request if they had fewer instances, and the amounts that they lack.
``board``: instances that can move, and their moves on the columns, with undo.
"""
