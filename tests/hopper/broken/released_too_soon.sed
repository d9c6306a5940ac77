# The products that read the stage are still running.
# twin: wgmma_ring
# find: load_a wgmma: 
# find: load_b wgmma: 
/@wait_1/s/ 1;/ 2;/
