# More registers are asked for than the producer has left.
# twin: wgmma_ring
# find: more: wait for 2304 registers
/@less/d
