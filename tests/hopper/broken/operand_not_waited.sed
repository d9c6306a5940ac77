# The operand in registers is made anew under the product that reads it.
# twin: wgmma_chain
# find: times_v: register of a wgmma that is in flight
/@wait_v/d
