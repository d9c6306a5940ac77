# The second 16 of k are 32 bytes further, not 64.
# twin: wgmma_ring
# find: result
s/4611686293305360386/4611686293305360388/
