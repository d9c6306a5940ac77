# The barrier of the first stage, whatever the stage.
# twin: bulk_ring
# find: read load: which a copy in flight still writes
/@full_wait$/s/\[%r[0-9]*\]/[_ZZ9bulk_ringE4bars]/
