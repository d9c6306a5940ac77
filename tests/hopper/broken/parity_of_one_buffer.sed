# One buffer, filled again and again, with one and the same parity.
# twin: wgmma_mn
# find: wgmma load_a: in flight
# find: wgmma load_b0: in flight
/@full_wait$/s/, %r[0-9]*;/, 0;/
