# One product may be in flight when its stage is released.
# twin: wgmma_cluster
# find: load_a wgmma: which a wgmma in flight still reads
/@wait_0/s/ 0;/ 1;/
