# More are expected than come.
# twin: wgmma_mn
# find: full_wait: lacks 16 bytes
/@expect/s/, %r[0-9]*;/, 24592;/
