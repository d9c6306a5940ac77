# A warp arrives twice for the two of them.
# twin: bulk_ring
# find: load read: 
# find: release: 
/@release/p
