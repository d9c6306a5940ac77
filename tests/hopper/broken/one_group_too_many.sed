# Two groups may be unfinished, and there are two buffers.
# twin: bulk_ring
# find: write store: which a copy in flight still reads
/@wait_read/s/ 1;/ 2;/
