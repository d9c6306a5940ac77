# Random kernels against an evaluator of the language; see tests/kernels/fuzz.c.
UNIT_TESTS += tests/kernels/fuzz
tests_kernels_fuzz_SOURCES = \
	tests/kernels/coverage.c tests/kernels/coverage.h \
	tests/kernels/eval.h tests/kernels/eval_atomic.c tests/kernels/eval_block.c \
	tests/kernels/eval_call.c tests/kernels/eval_expr.c tests/kernels/eval_int.h \
	tests/kernels/eval_meet.c tests/kernels/eval_stmt.c \
	tests/kernels/exempt.def \
	tests/kernels/fuzz.c \
	tests/kernels/generate.c tests/kernels/generate.h \
	tests/kernels/generate_call.c tests/kernels/generate_data.c \
	tests/kernels/generate_expr.c tests/kernels/generate_int.h tests/kernels/generate_meet.c \
	tests/kernels/generate_shared.c tests/kernels/generate_stmt.c \
	tests/kernels/library.c \
	tests/kernels/mutate.c tests/kernels/mutate.h \
	tests/kernels/random.h \
	tests/kernels/reduce.c tests/kernels/reduce.h \
	tests/kernels/scalar.c tests/kernels/scalar.h \
	tests/kernels/trial.c tests/kernels/trial.h
tests_kernels_fuzz_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_kernels_fuzz_CFLAGS = $(BASE_CFLAGS) -O2 -ffp-contract=off $(WARN_CFLAGS) $(YAML_CFLAGS)
tests_kernels_fuzz_LDADD = $(TOOL_LIBS)
# kernels that a bug was found by
EXTRA_DIST += tests/kernels/found
