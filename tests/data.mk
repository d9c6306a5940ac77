# tests of lib/data
UNIT_TESTS += tests/unit/data_dtype tests/unit/data_npy tests/unit/data_safetensors tests/unit/data_generate
tests_unit_data_dtype_SOURCES = tests/unit/data_dtype.c
tests_unit_data_dtype_LDADD = $(TOOL_LIBS)
tests_unit_data_npy_SOURCES = tests/unit/data_npy.c
tests_unit_data_npy_LDADD = $(TOOL_LIBS)
tests_unit_data_safetensors_SOURCES = tests/unit/data_safetensors.c
tests_unit_data_safetensors_LDADD = $(TOOL_LIBS)
tests_unit_data_generate_SOURCES = tests/unit/data_generate.c
tests_unit_data_generate_LDADD = $(TOOL_LIBS)

FUZZ_TARGETS += tests/fuzz/fuzz_npy
tests_fuzz_fuzz_npy_SOURCES = tests/fuzz/fuzz_npy.c $(FUZZ_MAIN)
tests_fuzz_fuzz_npy_LDADD = $(TOOL_LIBS)
tests_fuzz_fuzz_npy_LDFLAGS = $(FUZZ_LDFLAGS)

EXTRA_DIST += tests/data/dtype_sums.py tests/data/make_npy.py tests/data/generate_sums.py tests/data/npy tests/fuzz/corpus/fuzz_npy

UNIT_TESTS += tests/unit/data_message
tests_unit_data_message_SOURCES = tests/unit/data_message.c
tests_unit_data_message_LDADD = $(TOOL_LIBS)
