# Known to the own block, waited for in the other.
# twin: cluster_sum
# find: read send: not ordered
/@arrive$/s/release.cluster/release.cta/
