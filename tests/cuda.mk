# tests of lib/cuda: against a driver of our own, which 'make check' builds as a shared library
check_LTLIBRARIES = tests/libfakecuda.la
tests_libfakecuda_la_SOURCES = tests/fake_cuda.c
tests_libfakecuda_la_LDFLAGS = -module -avoid-version -rpath /nowhere

UNIT_TESTS += tests/unit/cuda_driver
tests_unit_cuda_driver_SOURCES = tests/unit/cuda_driver.c
tests_unit_cuda_driver_LDADD = $(TOOL_LIBS)
