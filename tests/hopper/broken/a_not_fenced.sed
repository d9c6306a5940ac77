# Of two sets of registers one was loaded behind the fence.
# twin: wgmma_registers
# find: wgmma: no wgmma.fence
# the second of them
/@wgmma_fence/{
    x
    s/^/x/
    /^xx$/{
        x
        d
    }
    x
}
