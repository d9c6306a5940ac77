# Blocks store where they should add.
# twin: bulk_reduce
# find: add: which a copy in flight still writes
/@add/s/cp.reduce\(.*\).add.f32/cp\1/
