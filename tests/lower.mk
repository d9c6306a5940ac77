# tests of lower: append programs to UNIT_TESTS, scripts to BATS_TESTS, data to EXTRA_DIST
BATS_TESTS += tests/cli/threads.bats tests/cli/stages.bats tests/cli/map.bats tests/cli/extents.bats tests/cli/regroup.bats tests/cli/reduce.bats tests/cli/scan.bats tests/cli/row.bats tests/cli/matmul_plan.bats tests/cli/matmul_wgmma_plan.bats tests/cli/matmul.bats tests/cli/conv.bats tests/cli/windows.bats tests/cli/matmul_simt.bats tests/cli/matmul_mma.bats tests/cli/matmul_wgmma.bats tests/cli/attention.bats tests/cli/chain_types.bats tests/cli/chain_cost.bats tests/cli/sliding.bats tests/cli/families.bats
EXTRA_DIST += tests/attention tests/cli/equations.bash tests/cli/products.bash tests/kernels/maps.py tests/data/maps.yaml tests/data/extents.yaml tests/data/reductions.yaml tests/data/matmul_simt.yaml tests/data/pairs.yaml tests/data/rows/in_place.yaml tests/data/rows/neighbours.yaml tests/data/rows/masks.yaml tests/data/rows/wide.yaml tests/data/rows/residual.yaml tests/data/rows/guards.yaml tests/data/threads.yaml tests/data/stages.yaml tests/data/chain.yaml tests/data/contractions.yaml tests/data/conv.yaml tests/data/windows.yaml tests/data/sliding.yaml tests/data/scans.yaml tests/data/bodies tests/data/functions.yaml tests/data/atomics.sh tests/kernels/stuck.py tests/data/tiles.yaml tests/data/phases.yaml tests/families
UNIT_TESTS += tests/unit/lower_magic
tests_unit_lower_magic_SOURCES = tests/unit/lower_magic.c
tests_unit_lower_magic_LDADD = $(TOOL_LIBS)
UNIT_TESTS += tests/unit/lower_matmul_cost
tests_unit_lower_matmul_cost_SOURCES = tests/unit/lower_matmul_cost.c
tests_unit_lower_matmul_cost_LDADD = $(TOOL_LIBS)
UNIT_TESTS += tests/unit/lower_chain
tests_unit_lower_chain_SOURCES = tests/unit/lower_chain.c tests/unit/chain.h
tests_unit_lower_chain_LDADD = $(TOOL_LIBS)
UNIT_TESTS += tests/unit/lower_grow
tests_unit_lower_grow_SOURCES = tests/unit/lower_grow.c
tests_unit_lower_grow_LDADD = $(TOOL_LIBS)
UNIT_TESTS += tests/unit/lower_chain_mma
tests_unit_lower_chain_mma_SOURCES = tests/unit/lower_chain_mma.c tests/unit/chain.h
tests_unit_lower_chain_mma_LDADD = $(TOOL_LIBS)
