# One thread waits until the buffer is free, the others do not wait for it.
# twin: wgmma_cluster
# find: write store: which a copy in flight still reads
/@buffer_free/d
