# wait_group waits for groups, and there are none.
# twin: bulk_ring
# find: write store: which a copy in flight still reads
/@commit$/d
