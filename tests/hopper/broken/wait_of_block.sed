# The wait takes what its own block releases.
# twin: cluster_sum
# find: read send: not ordered
/@full_wait$/s/acquire.cluster.//
