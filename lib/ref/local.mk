lib_libkaiocore_la_SOURCES += \
	lib/ref/accuracy.c \
	lib/ref/acc.h \
	lib/ref/arith.c \
	lib/ref/compare.c \
	lib/ref/compare.h \
	lib/ref/compile.c \
	lib/ref/compile.h \
	lib/ref/eval.c lib/ref/eval.h \
	lib/ref/evaluate.c \
	lib/ref/fill.c \
	lib/ref/fill.h \
	lib/ref/func.c \
	lib/ref/inline.c \
	lib/ref/integer.c \
	lib/ref/load.c \
	lib/ref/needed.c \
	lib/ref/once.c \
	lib/ref/parallel.c lib/ref/parallel.h \
	lib/ref/plan.c lib/ref/plan.h \
	lib/ref/product.c lib/ref/product.h \
	lib/ref/program.h \
	lib/ref/reach.c \
	lib/ref/reduce.c \
	lib/ref/ref.h \
	lib/ref/report.c \
	lib/ref/report.h \
	lib/ref/rescale.c \
	lib/ref/rows.c \
	lib/ref/so_far.c \
	lib/ref/storage.c lib/ref/storage.h \
	lib/ref/sum.c \
	lib/ref/table.c
