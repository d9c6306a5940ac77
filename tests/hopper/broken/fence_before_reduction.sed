# A neighbour folds into what the threads wrote.
# twin: bulk_reduce
# find: send fill_sum: no fence.proxy.async
# find: send fill_row: no fence.proxy.async
/@fence_fill/d
