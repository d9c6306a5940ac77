# What has changed the map is not made to reach the tensormap proxy.
# twin: grouped
# find: load rows_direct: no fence.proxy.tensormap::generic.release
/@release/d
