# A bulk copy from an address that is no multiple of 16.
# twin: bulk_ring
# find: load: misaligned
/@load/s/\], \[\(%rd[0-9]*\)\]/], [\1+8]/
