# wait_group.read: the buffer was read, the result need not be there.
# twin: write_back
# find: read store: which a copy in flight still writes
/@wait$/s/wait_group 0/wait_group.read 0/
