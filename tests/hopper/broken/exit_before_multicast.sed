# The same of products.
# twin: wgmma_cluster
# find: load_b: which may have exited
/@end_/d
