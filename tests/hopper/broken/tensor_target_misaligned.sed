# A tile of a tensor copy lies at a multiple of 128 bytes.
# twin: swizzle
# find: load: misaligned
/@load/s/bytes \[\(%r[0-9]*\)\]/bytes [\1+16]/
