# tests of the tree as a whole: layers, manuals, installation
BATS_TESTS += tests/layers.bats tests/house.bats tests/man.bats tests/install.bats tests/cli/tools.bats tests/cli/memory.bats tests/cli/signals.bats
EXTRA_DIST += tests/README.md tests/cli/signals.bash tests/examples.awk tests/expand.awk
EXTRA_DIST += tests/gpu.sh tests/oracle.sh tests/order.py

# The kernel library on a GPU, beside the simulator. Exit status 77: there is no GPU.
check-gpu: all tests/kernels/fuzz tests/unit/sim_mma tests/unit/sim_wgmma tests/unit/sim_wgmma_layout \
	tests/unit/sim_wgmma_async tests/unit/sim_wgmma_matmul tests/unit/kaio_device \
	tests/opcodes/sim_opcodes
	$(AM_TESTS_ENVIRONMENT) $(srcdir)/tests/gpu.sh -b tests/opcodes -b tests/unit
	tests/unit/kaio_device cuda
	tests/kernels/fuzz --device=cuda --count=1000
	$(AM_TESTS_ENVIRONMENT) $(srcdir)/tests/bench_gpu.sh
.PHONY: check-gpu

# the public API
UNIT_TESTS += tests/unit/kaio_api
tests_unit_kaio_api_SOURCES = tests/unit/kaio_api.c
tests_unit_kaio_api_LDADD = lib/libkaio.la
UNIT_TESTS += tests/unit/kaio_device
tests_unit_kaio_device_SOURCES = tests/unit/kaio_device.c
tests_unit_kaio_device_LDADD = lib/libkaio.la
EXTRA_tests_unit_kaio_device_DEPENDENCIES = tests/libfakecuda.so

# The kernel library's machine code beside nvcc's. Exit status 77: no nvcc or no nvdisasm.
check-sass: all
	$(AM_TESTS_ENVIRONMENT) $(srcdir)/tests/sass/compare.sh
.PHONY: check-sass
EXTRA_DIST += tests/sass
