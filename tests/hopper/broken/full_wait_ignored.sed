# try_wait may say no; nobody asks again.
# twin: bulk_ring
# find: read load: which a copy in flight still writes
/@full_wait_again/d
