# The second product still reads what is released.
# twin: wgmma_chain
# find: load times_v: which a wgmma in flight still reads
# find: times_v: register of a wgmma that is in flight
/@wait_v/s/ 0;/ 1;/
