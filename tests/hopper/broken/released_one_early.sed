# One product may be in flight when its stage is released.
# twin: wgmma_cluster
# find: load_a wgmma: 
# find: load_b wgmma: 
# find: wgmma: in flight
/@wait_0/s/ 0;/ 1;/
