# The keys are released while a product reads them; the producer comes to them only behind the wait for it.
# twin: wgmma_chain
/@wait_k/s/ 1;/ 2;/
