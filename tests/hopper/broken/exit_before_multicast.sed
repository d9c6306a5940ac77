# The same of products.
# twin: wgmma_cluster
# find: release: which may have exited
/@end_/d
