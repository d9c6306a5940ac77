lib_libkaiocore_la_SOURCES += \
	lib/spec/spec.h lib/spec/contract.h lib/spec/spec_int.h \
	lib/spec/yaml.c lib/spec/yaml.h \
	lib/spec/text.c lib/spec/types.c lib/spec/params.c lib/spec/derived.c lib/spec/require.c lib/spec/temps.c lib/spec/cases.c lib/spec/program.c lib/spec/spec.c \
	lib/spec/contract.c lib/spec/contract_map.c lib/spec/contract_steps.c lib/spec/contract_int.h lib/spec/contract_where.c lib/spec/contract_write.c
