# Two groups may be unfinished, and there are two buffers.
# twin: bulk_ring
# find: write store: 
/@wait_read/s/ 1;/ 2;/
