lib_libkaiocore_la_SOURCES += \
	lib/program/program.h lib/program/program_int.h lib/program/group.h \
	lib/program/shape.c lib/program/names.c lib/program/kernels.c lib/program/calls.c lib/program/call.h lib/program/call_dims.c \
	lib/program/reads.c lib/program/group.c lib/program/group_kernel.c lib/program/group_build.c lib/program/group_text.c lib/program/build.c
