lib_libkaiocore_la_SOURCES += \
	lib/cuda/api.c lib/cuda/api.def lib/cuda/api.h \
	lib/cuda/blas.c lib/cuda/blas.def lib/cuda/blas.h \
	lib/cuda/cudnn.c lib/cuda/cudnn_graph.c lib/cuda/cudnn_conv.c lib/cuda/cudnn_object.c lib/cuda/cudnn.def lib/cuda/cudnn.h lib/cuda/cudnn_values.h \
	lib/cuda/load.c lib/cuda/load.h lib/cuda/jit.c lib/cuda/jit.h \
	lib/cuda/nvml.c lib/cuda/nvml.h \
	lib/cuda/queue.c lib/cuda/launch.c lib/cuda/tensor.c \
	lib/cuda/driver.c lib/cuda/driver.h
