# sources of lib/cuda: append to lib_libkaiocore_la_SOURCES
