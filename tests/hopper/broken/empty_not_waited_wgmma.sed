# Nor here, where wgmma reads it.
# twin: wgmma_ring
# find: expect: more arrivals
/@empty_wait/d
