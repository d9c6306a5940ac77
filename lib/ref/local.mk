# sources of lib/ref: append to lib_libkaiocore_la_SOURCES
