# One buffer, filled again and again, with one and the same parity.
# twin: wgmma_mn
# find: load_a wgmma: which a wgmma in flight still reads
/@full_wait$/s/, %r[0-9]*;/, 0;/
