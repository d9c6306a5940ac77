lib_libkaiocore_la_SOURCES += \
	lib/ptx/isa.def lib/ptx/ptx.h \
	lib/ptx/table.c lib/ptx/table.h \
	lib/ptx/types.c \
	lib/ptx/needs.c \
	lib/ptx/nearest.c \
	lib/ptx/module.c \
	lib/ptx/target.c \
	lib/ptx/lex.c lib/ptx/lex.h \
	lib/ptx/scope.c lib/ptx/scope.h \
	lib/ptx/parse.c lib/ptx/parse.h \
	lib/ptx/parse_body.c \
	lib/ptx/parse_const.c \
	lib/ptx/parse_decl.c \
	lib/ptx/parse_operand.c \
	lib/ptx/print.c \
	lib/ptx/validate.c lib/ptx/validate.h \
	lib/ptx/validate_operand.c \
	lib/ptx/validate_words.c \
	lib/ptx/build.c
