# The producer waits until the last tile of the stage has come, not until it was read.
# twin: bulk_ring
# find: read load: which a copy in flight still writes
/@empty_wait$/s/\[\(%r[0-9]*\)\]/[\1+-24]/
