lib_libkaiocore_la_SOURCES += \
	lib/sim/sim.h lib/sim/flight.h lib/sim/mbarrier.h \
	lib/sim/device.c \
	lib/sim/tensor.c lib/sim/tensor.h lib/sim/tensor_image.c lib/sim/decode_tensor.c \
	lib/sim/module.c lib/sim/module.h lib/sim/symbols.c \
	lib/sim/decode.c lib/sim/decode.h lib/sim/families.def lib/sim/forms.c lib/sim/decode_alu.c lib/sim/decode_cvt.c \
	lib/sim/decode_mem.c lib/sim/decode_ctl.c lib/sim/decode_matrix.c lib/sim/decode_wmma.c lib/sim/decode_flight.c lib/sim/matrix.h \
	lib/sim/wgmma.h lib/sim/wgmma.c lib/sim/decode_wgmma.c lib/sim/registers.c \
	lib/sim/inline.c lib/sim/inline.h lib/sim/routine.c lib/sim/system.c lib/sim/system.h lib/sim/order.c lib/sim/mem.c lib/sim/heap.c lib/sim/heap.h lib/sim/copy.c lib/sim/once.c lib/sim/flight.c lib/sim/bulk.c lib/sim/mbarrier.c lib/sim/warp.c lib/sim/wait.c lib/sim/block.c lib/sim/block.h lib/sim/stuck.c lib/sim/launch.c \
	lib/sim/report.c lib/sim/report.h lib/sim/place.c lib/sim/demangle.c lib/sim/finding.c \
	lib/sim/check.c lib/sim/check.h lib/sim/check_cells.h lib/sim/check_async.c lib/sim/check_flight.c lib/sim/check_find.c lib/sim/check_init.c lib/sim/check_known.c \
	lib/sim/check_order.c lib/sim/check_shadow.c lib/sim/check_sync.c lib/sim/check_symbol.c \
	lib/sim/check_taint.c lib/sim/check_bits.c lib/sim/check_mbar.c \
	lib/sim/check_proxy.c lib/sim/check_map.c lib/sim/check_wgmma.c lib/sim/check_tell.c

# The handlers, built twice; sim_open chooses by what the machine has.
SIM_EXEC = \
	lib/sim/handlers.def lib/sim/int.def lib/sim/float.def lib/sim/half.def lib/sim/cvt.def \
	lib/sim/exec.h lib/sim/half.h lib/sim/sums.h lib/sim/cvt.h lib/sim/atom.h lib/sim/video.h \
	lib/sim/exec_fill.c lib/sim/exec_int.c lib/sim/exec_float.c lib/sim/exec_half.c \
	lib/sim/exec_cvt.c lib/sim/exec_control.c lib/sim/exec_warp.c lib/sim/exec_mem.c \
	lib/sim/exec_atom.c lib/sim/exec_check.c lib/sim/exec_matrix.c lib/sim/exec_mma.c lib/sim/exec_wgmma.c
# (a loop that clang cannot vectorise is slower, not wrong)
SIM_EXEC_CFLAGS = $(AM_CFLAGS) -fno-trapping-math -fno-math-errno -Wno-pass-failed

noinst_LTLIBRARIES += lib/sim/libsimbaseline.la lib/sim/libsimavx2.la
lib_sim_libsimbaseline_la_SOURCES = $(SIM_EXEC)
lib_sim_libsimbaseline_la_CPPFLAGS = $(AM_CPPFLAGS) -DSIM_BUILD=baseline
lib_sim_libsimbaseline_la_CFLAGS = $(SIM_EXEC_CFLAGS)
lib_sim_libsimavx2_la_SOURCES = $(SIM_EXEC)
lib_sim_libsimavx2_la_CPPFLAGS = $(AM_CPPFLAGS) -DSIM_BUILD=avx2
lib_sim_libsimavx2_la_CFLAGS = $(SIM_EXEC_CFLAGS) -mavx2 -mfma
lib_libkaiocore_la_LIBADD = lib/sim/libsimbaseline.la lib/sim/libsimavx2.la
# behind the user's CFLAGS: these loops need the vectoriser whatever the rest is built with
SIM_OPTIMISATION = -O3
$(lib_sim_libsimbaseline_la_OBJECTS) $(lib_sim_libsimavx2_la_OBJECTS): CFLAGS += $(SIM_OPTIMISATION)
