# wait_group waits for groups, and there are none.
# twin: bulk_ring
# find: write store: 
# find: store: 
/@commit$/d
