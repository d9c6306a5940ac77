# tests of lib/sim
EXTRA_DIST += tests/unit/sim.h \
	tests/ptx-run/kernels.cu tests/ptx-run/kernels.ptx

UNIT_TESTS += tests/unit/sim_kernels
tests_unit_sim_kernels_SOURCES = tests/unit/sim_kernels.c
tests_unit_sim_kernels_LDADD = $(TOOL_LIBS)
