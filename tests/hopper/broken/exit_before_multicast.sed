# The same of products.
# twin: wgmma_cluster
# find: release: 
# find: load_b: 
/@end_/d
