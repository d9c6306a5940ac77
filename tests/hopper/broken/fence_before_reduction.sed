# A neighbour folds into what the threads wrote.
# twin: bulk_reduce
# find: send fill_sum: fence.proxy.async
# find: send fill_row: fence.proxy.async
/@fence_fill/d
