# The products that read the stage are still running.
# twin: wgmma_ring
# find: load_a wgmma: which a wgmma in flight still reads
/@wait_1/s/ 1;/ 2;/
