# tests of lib/cuda: against a driver of our own. Made without libtool, which makes no shared library where
# ./configure was told --disable-shared.
check_DATA = tests/libfakecuda.so tests/libfakecublas.so
EXTRA_DIST += tests/fake_cuda.c tests/fake_cublas.c
CLEANFILES += tests/libfakecuda.so tests/libfakecublas.so
tests/libfakecuda.so: tests/fake_cuda.c
	$(AM_V_CC)$(MKDIR_P) tests && $(COMPILE) -fPIC -shared $(LDFLAGS) -o $@ $(srcdir)/tests/fake_cuda.c $(LIBS)

tests/libfakecublas.so: tests/fake_cublas.c lib/data/dtype.c
	$(AM_V_CC)$(MKDIR_P) tests && $(COMPILE) -fPIC -shared $(LDFLAGS) -o $@ $(srcdir)/tests/fake_cublas.c $(srcdir)/lib/data/dtype.c $(LIBS)

UNIT_TESTS += tests/unit/cuda_blas
tests_unit_cuda_blas_SOURCES = tests/unit/cuda_blas.c
tests_unit_cuda_blas_LDADD = $(TOOL_LIBS)

UNIT_TESTS += tests/unit/cuda_driver
tests_unit_cuda_driver_SOURCES = tests/unit/cuda_driver.c
tests_unit_cuda_driver_LDADD = $(TOOL_LIBS)
