# The producer waits for a lap that never was.
# twin: bulk_ring
# find: empty_wait: lacks 2 of 2 arrivals
/@empty_wait$/{
    s/, %r\([0-9]*\);/, 0;/
}
