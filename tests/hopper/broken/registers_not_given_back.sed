# More registers are asked for than the producer has left.
# twin: wgmma_ring
# find: more: registers
# find: more: setmaxnreg
/@less/d
