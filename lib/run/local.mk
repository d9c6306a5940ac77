lib_libkaiocore_la_SOURCES += \
	lib/run/device.h lib/run/blas.h lib/run/sdpa.h lib/run/conv.h lib/run/tensor_map.c lib/run/tensor_map.h \
	lib/run/choose.c lib/run/choose.h \
	lib/run/run.h \
	lib/run/bind.c lib/run/fits.c \
	lib/run/plan.c lib/run/plan_map.c lib/run/plan.h \
	lib/run/messages.c lib/run/messages.h \
	lib/run/execute.c lib/run/time.c lib/run/job.h \
	lib/run/program.c lib/run/program.h lib/run/program_tree.c lib/run/program_walk.c lib/run/program_call.c \
	lib/run/program_view.c lib/run/program_memory.c lib/run/program_device.c lib/run/program_print.c lib/run/program_watch.c \
	lib/run/args.c lib/run/args.h lib/run/view.c lib/run/view.h \
	lib/run/try.h lib/run/weights.c lib/run/weights.h lib/run/keep.c lib/run/keep.h \
	lib/run/made.c lib/run/made.h lib/run/launchable.c lib/run/launchable.h \
	lib/run/line.c lib/run/line.h
