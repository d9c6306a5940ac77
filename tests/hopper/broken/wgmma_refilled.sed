# One buffer, loaded anew under the products.
# twin: wgmma_mn
# find: load_a wgmma: 
# find: load_b0 wgmma: 
# find: wgmma: 
/@wait_0/d
