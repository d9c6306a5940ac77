# sources of lib/sim: append to lib_libkaiocore_la_SOURCES
