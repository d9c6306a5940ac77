lib_libkaiocore_la_SOURCES += \
	lib/data/dtype.c lib/data/dtype.def lib/data/dtype.h
