# Nor here, where wgmma reads it.
# twin: wgmma_ring
# find: load_a wgmma: 
# find: load_b wgmma: 
/@empty_wait/d
