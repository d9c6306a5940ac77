lib_libkaiocore_la_SOURCES += \
	lib/data/dtype.def lib/data/dtype.h
