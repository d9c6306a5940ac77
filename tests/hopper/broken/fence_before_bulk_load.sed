# The buffer was written by threads before the copy comes.
# twin: lifetime
# find: load fill: no fence.proxy.async
/@fence_load/d
