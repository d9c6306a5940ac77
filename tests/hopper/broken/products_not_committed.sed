# wait_group waits for groups, and there are none.
# twin: wgmma_types
# find: wgmma: register of a wgmma that is in flight
/@wgmma_commit/d
