# Only an arrival: the phase is complete before the bytes are there.
# twin: bulk_ring
# find: read load: which a copy in flight still writes
/@expect/s/arrive.expect_tx.shared::cta.b64 _, \(\[%r[0-9]*\]\), %r[0-9]*/arrive.shared::cta.b64 _, \1/
