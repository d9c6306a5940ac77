# The fence is for the next block's map.
# twin: grouped
# find: load publish: no fence.proxy.tensormap::generic.acquire
/@acquire/s/\], 128/+128], 128/
