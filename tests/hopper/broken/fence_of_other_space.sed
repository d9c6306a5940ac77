# The fence is for shared memory, what was written is global.
# twin: write_back
# find: load double: no fence.proxy.async
/@fence_global/s/global/shared::cta/
