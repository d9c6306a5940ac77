# tests of lib/sim
EXTRA_DIST += tests/unit/sim.h tests/unit/numbers.h \
	tests/ptx-run/kernels.cu tests/ptx-run/kernels.ptx

UNIT_TESTS += tests/unit/sim_kernels
tests_unit_sim_kernels_SOURCES = tests/unit/sim_kernels.c
tests_unit_sim_kernels_LDADD = $(TOOL_LIBS)

EXTRA_DIST += tests/ptx-run/ops.txt tests/ptx-run/make_ops.py tests/ptx-run/softfloat.py \
	tests/ptx-run/forms_int.py tests/ptx-run/forms_float.py tests/ptx-run/forms_cvt.py

UNIT_TESTS += tests/unit/sim_ops
tests_unit_sim_ops_SOURCES = tests/unit/sim_ops.c
tests_unit_sim_ops_LDADD = $(TOOL_LIBS)

UNIT_TESTS += tests/unit/sim_names
tests_unit_sim_names_SOURCES = tests/unit/sim_names.c
tests_unit_sim_names_LDADD = $(TOOL_LIBS)

UNIT_TESTS += tests/unit/sim_faults
tests_unit_sim_faults_SOURCES = tests/unit/sim_faults.c
tests_unit_sim_faults_LDADD = $(TOOL_LIBS)

EXTRA_DIST += tests/ptx-run/control.ptx
UNIT_TESTS += tests/unit/sim_control
tests_unit_sim_control_SOURCES = tests/unit/sim_control.c
tests_unit_sim_control_LDADD = $(TOOL_LIBS)

UNIT_TESTS += tests/unit/sim_threads
tests_unit_sim_threads_SOURCES = tests/unit/sim_threads.c
tests_unit_sim_threads_LDADD = $(TOOL_LIBS)

UNIT_TESTS += tests/unit/sim_atoms
tests_unit_sim_atoms_SOURCES = tests/unit/sim_atoms.c
tests_unit_sim_atoms_LDADD = $(TOOL_LIBS)
EXTRA_DIST += tests/sim_speed.sh

UNIT_TESTS += tests/unit/sim_flow
tests_unit_sim_flow_SOURCES = tests/unit/sim_flow.c
tests_unit_sim_flow_LDADD = $(TOOL_LIBS)

UNIT_TESTS += tests/unit/sim_calls
tests_unit_sim_calls_SOURCES = tests/unit/sim_calls.c
tests_unit_sim_calls_LDADD = $(TOOL_LIBS)

UNIT_TESTS += tests/unit/sim_check
tests_unit_sim_check_SOURCES = tests/unit/sim_check.c
tests_unit_sim_check_LDADD = $(TOOL_LIBS)

EXTRA_DIST += tests/ptx-run/threads.cu tests/ptx-run/threads.ptx

UNIT_TESTS += tests/unit/sim_heap
tests_unit_sim_heap_SOURCES = tests/unit/sim_heap.c tests/unit/sim.h
tests_unit_sim_heap_LDADD = $(TOOL_LIBS)
EXTRA_DIST += tests/ptx-run/heap.cu tests/ptx-run/heap.ptx

UNIT_TESTS += tests/unit/sim_system
tests_unit_sim_system_SOURCES = tests/unit/sim_system.c tests/unit/sim.h
tests_unit_sim_system_LDADD = $(TOOL_LIBS)
EXTRA_DIST += tests/ptx-run/system.cu tests/ptx-run/system.ptx

UNIT_TESTS += tests/unit/sim_routines
tests_unit_sim_routines_SOURCES = tests/unit/sim_routines.c tests/unit/sim.h
tests_unit_sim_routines_LDADD = $(TOOL_LIBS)
EXTRA_DIST += tests/ptx-run/routines.cu tests/ptx-run/routines.ptx tests/ptx-run/routines_O0.ptx
UNIT_TESTS += tests/unit/sim_compiled
tests_unit_sim_compiled_SOURCES = tests/unit/sim_compiled.c
tests_unit_sim_compiled_LDADD = $(TOOL_LIBS)

EXTRA_DIST += tests/ptx-run/matrix.cu tests/ptx-run/matrix.ptx
UNIT_TESTS += tests/unit/sim_matrix
tests_unit_sim_matrix_SOURCES = tests/unit/sim_matrix.c
tests_unit_sim_matrix_LDADD = $(TOOL_LIBS)

EXTRA_DIST += tests/ptx-run/mma.golden
UNIT_TESTS += tests/unit/sim_mma
tests_unit_sim_mma_SOURCES = tests/unit/sim_mma.c
tests_unit_sim_mma_LDADD = $(TOOL_LIBS)

UNIT_TESTS += tests/unit/sim_async
tests_unit_sim_async_SOURCES = tests/unit/sim_async.c
tests_unit_sim_async_LDADD = $(TOOL_LIBS)

EXTRA_DIST += tests/ptx-run/wmma.cu tests/ptx-run/wmma.ptx
UNIT_TESTS += tests/unit/sim_wmma
tests_unit_sim_wmma_SOURCES = tests/unit/sim_wmma.c
tests_unit_sim_wmma_LDADD = $(TOOL_LIBS)

UNIT_TESTS += tests/unit/sim_mbarrier
tests_unit_sim_mbarrier_SOURCES = tests/unit/sim_mbarrier.c tests/unit/sim_flight.h tests/unit/sim_judged.h tests/unit/ptxas.h
tests_unit_sim_mbarrier_LDADD = $(TOOL_LIBS)

UNIT_TESTS += tests/unit/sim_bulk
tests_unit_sim_bulk_SOURCES = tests/unit/sim_bulk.c tests/unit/sim_flight.h tests/unit/sim_judged.h tests/unit/ptxas.h
tests_unit_sim_bulk_LDADD = $(TOOL_LIBS)

EXTRA_DIST += tests/unit/wgmma.h
UNIT_TESTS += tests/unit/sim_wgmma
tests_unit_sim_wgmma_SOURCES = tests/unit/sim_wgmma.c
tests_unit_sim_wgmma_LDADD = $(TOOL_LIBS)

UNIT_TESTS += tests/unit/sim_wgmma_layout
tests_unit_sim_wgmma_layout_SOURCES = tests/unit/sim_wgmma_layout.c
tests_unit_sim_wgmma_layout_LDADD = $(TOOL_LIBS)

EXTRA_DIST += tests/unit/tensor.h
UNIT_TESTS += tests/unit/sim_tensor
tests_unit_sim_tensor_SOURCES = tests/unit/sim_tensor.c
tests_unit_sim_tensor_LDADD = $(TOOL_LIBS)

EXTRA_DIST += tests/ptx-run/wgmma.cu tests/ptx-run/wgmma.ptx
UNIT_TESTS += tests/unit/sim_wgmma_matmul
tests_unit_sim_wgmma_matmul_SOURCES = tests/unit/sim_wgmma_matmul.c
tests_unit_sim_wgmma_matmul_LDADD = $(TOOL_LIBS)

UNIT_TESTS += tests/unit/sim_im2col
tests_unit_sim_im2col_SOURCES = tests/unit/sim_im2col.c
tests_unit_sim_im2col_LDADD = $(TOOL_LIBS)

UNIT_TESTS += tests/unit/sim_tensor_ops
tests_unit_sim_tensor_ops_SOURCES = tests/unit/sim_tensor_ops.c
tests_unit_sim_tensor_ops_LDADD = $(TOOL_LIBS)

UNIT_TESTS += tests/unit/sim_wgmma_async
tests_unit_sim_wgmma_async_SOURCES = tests/unit/sim_wgmma_async.c tests/unit/sim_judged.h tests/unit/ptxas.h
tests_unit_sim_wgmma_async_LDADD = $(TOOL_LIBS)
