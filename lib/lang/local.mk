lib_libkaiocore_la_SOURCES += \
	lib/lang/math.def \
	lib/lang/lang.h lib/lang/launch.h lib/lang/launch.c lib/lang/lang_int.h lib/lang/builtin.def \
	lib/lang/names.c lib/lang/lex.c \
	lib/lang/parser.c lib/lang/parse_decl.c lib/lang/parse_expr.c lib/lang/parse_param.c lib/lang/parse_stmt.c lib/lang/parse_steps.c lib/lang/print_steps.c \
	lib/lang/equations_int.h lib/lang/parse_equation.c lib/lang/order.c lib/lang/equations.c \
	lib/lang/range.c lib/lang/uses.c \
	lib/lang/string.c \
	lib/lang/scope.c lib/lang/type.c lib/lang/convert.c lib/lang/rounded.c lib/lang/fold.c \
	lib/lang/check_array.c lib/lang/check_expr.c lib/lang/check_call.c lib/lang/check_sync.c lib/lang/check_atomic.c lib/lang/check_stmt.c lib/lang/func.c lib/lang/inline.c lib/lang/notation.c lib/lang/flow.c lib/lang/guard.c \
	lib/lang/uniform.h lib/lang/uniform_value.c lib/lang/uniform.c \
	lib/lang/eval.c lib/lang/print.c lib/lang/print_stmt.c
