# The copy may go by what was in the place of the map before.
# twin: grouped
# find: load: no fence.proxy.tensormap::generic.acquire
/@acquire/d
