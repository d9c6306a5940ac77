# tests of spec: diagnostics and the launch contract
UNIT_TESTS += tests/unit/spec_contract tests/unit/spec_diag
tests_unit_spec_contract_SOURCES = tests/unit/spec_contract.c
tests_unit_spec_contract_LDADD = $(TOOL_LIBS)
tests_unit_spec_diag_SOURCES = tests/unit/spec_diag.c
tests_unit_spec_diag_LDADD = $(TOOL_LIBS)
EXTRA_DIST += tests/diag

FUZZ_TARGETS += tests/fuzz/fuzz_yaml
tests_fuzz_fuzz_yaml_SOURCES = tests/fuzz/fuzz_yaml.c $(FUZZ_MAIN)
tests_fuzz_fuzz_yaml_LDADD = $(TOOL_LIBS)
tests_fuzz_fuzz_yaml_LDFLAGS = $(FUZZ_LDFLAGS)
EXTRA_DIST += tests/fuzz/corpus/fuzz_yaml
