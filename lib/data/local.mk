lib_libkaiocore_la_SOURCES += \
	lib/data/dtype.c lib/data/dtype.def lib/data/dtype.h \
	lib/data/buffer.c lib/data/buffer.h \
	lib/data/load.c lib/data/load.h \
	lib/data/npy.c lib/data/npy.h \
	lib/data/safetensors.c lib/data/safetensors.h \
	lib/data/message.c lib/data/message.h \
	lib/data/philox.c lib/data/philox.h \
	lib/data/generate.c lib/data/generate.h
