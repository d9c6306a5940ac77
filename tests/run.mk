# tests of lib/run and kaio-run
UNIT_TESTS += tests/unit/run_execute
tests_unit_run_execute_SOURCES = tests/unit/run_execute.c
tests_unit_run_execute_LDADD = $(TOOL_LIBS)

UNIT_TESTS += tests/unit/run_tensor_map
tests_unit_run_tensor_map_SOURCES = tests/unit/run_tensor_map.c
tests_unit_run_tensor_map_LDADD = $(TOOL_LIBS)

BATS_TESTS += tests/cli/run_args.bats tests/cli/run_launch.bats tests/cli/run_devices.bats tests/cli/run_simulator.bats tests/cli/run_limits.bats tests/cli/run_shapes.bats tests/cli/run_signals.bats tests/cli/lines.bats tests/cli/weights.bats tests/cli/messages.bats tests/cli/temps.bats tests/cli/program_emit.bats tests/cli/program_run.bats tests/cli/examples.bats
EXTRA_DIST += tests/cli/run.bash tests/data/run tests/data/messages.yaml tests/examples.py

FUZZ_TARGETS += tests/fuzz/fuzz_run
tests_fuzz_fuzz_run_SOURCES = tests/fuzz/fuzz_run.c $(FUZZ_MAIN)
tests_fuzz_fuzz_run_LDADD = $(TOOL_LIBS)
tests_fuzz_fuzz_run_LDFLAGS = $(FUZZ_LDFLAGS)
EXTRA_DIST += tests/fuzz/corpus/fuzz_run
