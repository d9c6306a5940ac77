lib_libkaiocore_la_SOURCES += \
	lib/cuda/api.c lib/cuda/api.def lib/cuda/api.h \
	lib/cuda/load.c lib/cuda/load.h \
	lib/cuda/driver.c
