# Random equations against the reference; see tests/equations/fuzz.c.
UNIT_TESTS += tests/equations/fuzz
tests_equations_fuzz_SOURCES = \
	tests/equations/contract.c \
	tests/equations/expr.c \
	tests/equations/fuzz.c \
	tests/equations/gen.h \
	tests/equations/generate.c tests/equations/generate.h \
	tests/equations/judge.c tests/equations/judge.h
tests_equations_fuzz_CPPFLAGS = $(AM_CPPFLAGS) -I$(srcdir)/tests
tests_equations_fuzz_LDADD = $(TOOL_LIBS)
