# No one waits for the tile.
# twin: bulk_ring
# find: read load: in flight
/@full_wait/d
