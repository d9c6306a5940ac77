# tests of kaio-bench and of the comparison with PyTorch
BATS_TESTS += tests/cli/bench.bats tests/cli/tune.bats tests/cli/operations.bats
EXTRA_DIST += tests/pytorch.py tests/pytorch_attention.py tests/pytorch_contest.py tests/pytorch_driver.py tests/pytorch_random.py
EXTRA_DIST += tests/pytorch_operations.py tests/pytorch_table.py tests/operations
EXTRA_DIST += tests/bench_gpu.sh tests/attention_gpu.sh tests/families_gpu.sh tests/gpu_parts.bash tests/data/bench

FUZZ_TARGETS += tests/fuzz/fuzz_bench
tests_fuzz_fuzz_bench_SOURCES = tests/fuzz/fuzz_bench.c $(FUZZ_MAIN)
tests_fuzz_fuzz_bench_LDADD = $(TOOL_LIBS)
tests_fuzz_fuzz_bench_LDFLAGS = $(FUZZ_LDFLAGS)
EXTRA_DIST += tests/fuzz/corpus/fuzz_bench

UNIT_TESTS += tests/unit/bench_rows
tests_unit_bench_rows_SOURCES = tests/unit/bench_rows.c
tests_unit_bench_rows_LDADD = $(TOOL_LIBS)
