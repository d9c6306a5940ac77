# The arrival does not carry the stores before it.
# twin: cluster_sum
# find: read send: not ordered
/@arrive$/s/release.cluster/relaxed.cluster/
