"""Everything that a running upstream Placement holds, copied into Roost and compared with it."""
