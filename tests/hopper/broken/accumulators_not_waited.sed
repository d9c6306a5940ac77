# The sums are stored while they are computed.
# twin: wgmma_ring
# find: wgmma: 
/@wait_0/d
