# tests of lib/cuda: against a driver of our own. Made without libtool, which makes no shared library where
# ./configure was told --disable-shared.
check_DATA = tests/libfakecuda.so tests/libfakecublas.so tests/libfakecudnn.so
EXTRA_DIST += tests/fake_cuda.c tests/fake_cublas.c tests/fake_cudnn.c
CLEANFILES += tests/libfakecuda.so tests/libfakecublas.so tests/libfakecudnn.so
tests/libfakecuda.so: tests/fake_cuda.c
	$(AM_V_CC)$(MKDIR_P) tests && $(COMPILE) -fPIC -shared $(LDFLAGS) -o $@ $(srcdir)/tests/fake_cuda.c $(LIBS)

tests/libfakecublas.so: tests/fake_cublas.c lib/data/dtype.c
	$(AM_V_CC)$(MKDIR_P) tests && $(COMPILE) -fPIC -shared $(LDFLAGS) -o $@ $(srcdir)/tests/fake_cublas.c $(srcdir)/lib/data/dtype.c $(LIBS)

tests/libfakecudnn.so: tests/fake_cudnn.c lib/data/dtype.c
	$(AM_V_CC)$(MKDIR_P) tests && $(COMPILE) -fPIC -shared $(LDFLAGS) -o $@ $(srcdir)/tests/fake_cudnn.c $(srcdir)/lib/data/dtype.c $(LIBS)

# for tests/unit/cuda_cudnn with a real cuDNN
EXTRA_DIST += tests/no_gpu.c
CLEANFILES += tests/nogpu/libcuda.so.1
tests/nogpu/libcuda.so.1: tests/no_gpu.c
	$(AM_V_CC)$(MKDIR_P) tests/nogpu && $(COMPILE) -fPIC -shared $(LDFLAGS) -o $@ $(srcdir)/tests/no_gpu.c

UNIT_TESTS += tests/unit/cuda_blas
tests_unit_cuda_blas_SOURCES = tests/unit/cuda_blas.c
tests_unit_cuda_blas_LDADD = $(TOOL_LIBS)

UNIT_TESTS += tests/unit/cuda_driver
tests_unit_cuda_driver_SOURCES = tests/unit/cuda_driver.c
tests_unit_cuda_driver_LDADD = $(TOOL_LIBS)

UNIT_TESTS += tests/unit/cuda_cudnn
tests_unit_cuda_cudnn_SOURCES = tests/unit/cuda_cudnn.c
tests_unit_cuda_cudnn_LDADD = $(TOOL_LIBS)

UNIT_TESTS += tests/unit/cuda_attention
tests_unit_cuda_attention_SOURCES = tests/unit/cuda_attention.c
tests_unit_cuda_attention_LDADD = $(TOOL_LIBS)
