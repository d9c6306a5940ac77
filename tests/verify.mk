# tests of kaio-verify

# Mutated kernels: 'make check' takes a sample of the mutants of each spec; tests/mutate --limit=0 takes them all.
tests_mutate_SOURCES = tests/mutate.c
tests_mutate_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_mutate_LDADD = $(TOOL_LIBS)

BATS_TESTS += tests/cli/notations.bats tests/cli/derived.bats tests/cli/verify.bats tests/cli/verify_run.bats tests/cli/verify_shapes.bats tests/cli/verify_accuracy.bats tests/cli/verify_code.bats tests/cli/verify_cases.bats tests/cli/verify_rows.bats tests/cli/verify_inputs.bats tests/cli/verify_golden.bats tests/cli/verify_steps.bats tests/cli/program_verify.bats tests/cli/formats.bats tests/cli/specs.bats tests/bound.bats

EXTRA_DIST += tests/cli/verify.bash tests/data/constructs.yaml tests/data/notations.yaml tests/data/junit.xsd \
	tests/bound/honest.yaml tests/steps/gpt2.yaml tests/steps/names.yaml tests/bound/matmul.yaml tests/bound/wrong.yaml
