# The next part of a goes into the registers that a product reads.
# twin: wgmma_registers
# find: wgmma: register of a wgmma that is in flight
/@wait_even/d
