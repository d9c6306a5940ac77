# The buffer of a tensor store is written anew while it is read.
# twin: wgmma_cluster
# find: write store: 
/@wait_read/d
