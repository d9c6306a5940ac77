# One buffer, loaded anew under the products.
# twin: wgmma_mn
# find: load_a wgmma: which a wgmma in flight still reads
/@wait_0/d
