# More are expected than come.
# twin: wgmma_mn
# find: full_wait: mbarrier
/@expect/s/, %r[0-9]*;/, 24592;/
