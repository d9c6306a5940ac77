# tests of the kernel language's math library, lib/lower/*.k compiled as C; the programs take a step as
# argument, 1 for an exhaustive run
MATH_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
MATH_CFLAGS = $(BASE_CFLAGS) -O2 -ffp-contract=off

EXTRA_DIST += tests/math/functions.h tests/math/prelude.h tests/math/prelude_end.h tests/math/wide.h tests/math/wide_end.h \
	tests/math/minimax.py tests/math/coefficients.py tests/math/ulp.sh

UNIT_TESTS += tests/math/convert
tests_math_convert_SOURCES = tests/math/convert.c
tests_math_convert_CPPFLAGS = $(MATH_CPPFLAGS)
tests_math_convert_CFLAGS = $(MATH_CFLAGS)
tests_math_convert_LDADD = $(TOOL_LIBS)

UNIT_TESTS += tests/math/math_f32
tests_math_math_f32_SOURCES = tests/math/math_f32.c
tests_math_math_f32_CPPFLAGS = $(MATH_CPPFLAGS)
tests_math_math_f32_CFLAGS = $(MATH_CFLAGS)

UNIT_TESTS += tests/math/begin
tests_math_begin_SOURCES = tests/math/begin.c
tests_math_begin_CPPFLAGS = $(MATH_CPPFLAGS)
tests_math_begin_CFLAGS = $(MATH_CFLAGS)

UNIT_TESTS += tests/math/math_f64
tests_math_math_f64_SOURCES = tests/math/math_f64.c
tests_math_math_f64_CPPFLAGS = $(MATH_CPPFLAGS)
tests_math_math_f64_CFLAGS = $(MATH_CFLAGS)

UNIT_TESTS += tests/math/random
tests_math_random_SOURCES = tests/math/random.c
tests_math_random_CPPFLAGS = $(MATH_CPPFLAGS)
tests_math_random_CFLAGS = $(MATH_CFLAGS)
tests_math_random_LDADD = $(TOOL_LIBS)

# The library, emitted and run, against the library as C.
BATS_TESTS += tests/cli/math.bats tests/cli/random.bats
check_PROGRAMS += tests/math/apply
tests_math_apply_SOURCES = tests/math/apply.c
tests_math_apply_CPPFLAGS = $(MATH_CPPFLAGS)
tests_math_apply_CFLAGS = $(MATH_CFLAGS)

# Every f32 argument: half an hour or so, so not part of 'make check'.
EXTRA_PROGRAMS = tests/math/exhaustive
tests_math_exhaustive_SOURCES = tests/math/exhaustive.c
tests_math_exhaustive_CPPFLAGS = $(MATH_CPPFLAGS)
tests_math_exhaustive_CFLAGS = $(MATH_CFLAGS) -O3 -fno-trapping-math -fno-math-errno
tests_math_exhaustive_LDADD = tests/math/libreference.la -lmvec
EXTRA_LTLIBRARIES = tests/math/libreference.la
tests_math_libreference_la_SOURCES = tests/math/reference.c
tests_math_libreference_la_CFLAGS = $(BASE_CFLAGS) -O3 -ffast-math -mavx2 -mfma
