# wait_group waits for groups, and there are none.
# twin: wgmma_types
# find: wgmma: 
/@wgmma_commit/d
