# sources of lib/run: append to lib_libkaiocore_la_SOURCES
