# try_wait may say no; nobody asks again.
# twin: bulk_ring
# find: read load: in flight
/@full_wait_again/d
