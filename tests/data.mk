# tests of lib/data
UNIT_TESTS += tests/unit/data_dtype
tests_unit_data_dtype_SOURCES = tests/unit/data_dtype.c
tests_unit_data_dtype_LDADD = $(TOOL_LIBS)
EXTRA_DIST += tests/data/dtype_sums.py
