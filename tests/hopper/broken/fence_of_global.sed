# A bulk copy fetches what plain stores left in global memory.
# twin: write_back
# find: load double: no fence.proxy.async
/@fence_global/d
