# A stage is freed by one block, and filled by both.
# twin: multicast
# find: load: which a copy in flight still writes
/@init_empty/s/, %r[0-9]*;/, 4;/
