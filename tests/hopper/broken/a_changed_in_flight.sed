# The next part of a goes into the registers that a product reads.
# twin: wgmma_registers
# find: wgmma: 
/@wait_even/d
