# The sums are stored while they are computed.
# twin: wgmma_ring
# find: write wgmma: register of a wgmma that is in flight
/@wait_0/d
