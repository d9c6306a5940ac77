# A warp arrives twice for the two of them.
# twin: bulk_ring
# find: empty_wait full_wait: stuck
/@release/p
