lib_libkaiocore_la_SOURCES += \
	lib/ptx/isa.def lib/ptx/ptx.h
