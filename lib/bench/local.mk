lib_libkaiocore_la_SOURCES += \
	lib/bench/attention.c lib/bench/attention.h lib/bench/formula.c lib/bench/formula.h \
	lib/bench/gradient.c lib/bench/mask.c lib/bench/score.c lib/bench/sdpa.c \
	lib/bench/choice.c lib/bench/choice.h lib/bench/conv.c lib/bench/convolution.c lib/bench/convolution_text.c \
	lib/bench/convolution.h lib/bench/cudnn.c \
	lib/bench/baseline.c lib/bench/baseline.h \
	lib/bench/bench.c lib/bench/bench.h \
	lib/bench/code.c lib/bench/code.h \
	lib/bench/blas.c lib/bench/blas.h lib/bench/rest.c lib/bench/copy.c \
	lib/bench/data.c lib/bench/data.h \
	lib/bench/kernel.c lib/bench/rival.c lib/bench/rival.h \
	lib/bench/measure.c lib/bench/measure.h \
	lib/bench/modules.c lib/bench/modules.h \
	lib/bench/plan.c lib/bench/plan.h \
	lib/bench/plot.c lib/bench/plot.h \
	lib/bench/product.c lib/bench/product.h \
	lib/bench/report.c lib/bench/report.h \
	lib/bench/means.c lib/bench/means.h \
	lib/bench/suite.c lib/bench/suite.h \
	lib/bench/sweep.c lib/bench/sweep.h \
	lib/bench/tune.c lib/bench/tune.h \
	lib/bench/work.c lib/bench/work.h
