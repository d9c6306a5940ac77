# test_wait in place of try_wait.
# twin: bulk_ring
s/try_wait/test_wait/
