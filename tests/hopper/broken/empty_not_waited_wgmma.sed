# Nor here, where wgmma reads it.
# twin: wgmma_ring
# find: expect: more arrival
/@empty_wait/d
