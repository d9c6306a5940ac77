# As full_wait_ignored, where another block sends the tile.
# twin: multicast
# find: read load: which a copy in flight still writes
/@full_wait_again/d
