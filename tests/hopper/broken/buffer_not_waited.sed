# The buffer of a tensor store is written anew while it is read.
# twin: wgmma_cluster
# find: write store: which a copy in flight still reads
/@wait_read/d
