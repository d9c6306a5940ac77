# The producer waits for a lap that never was.
# twin: bulk_ring
# find: empty_wait: mbarrier
/@empty_wait$/{
    s/, %r\([0-9]*\);/, 0;/
}
