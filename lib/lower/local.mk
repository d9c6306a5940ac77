lib_libkaiocore_la_SOURCES += \
	lib/lower/lower.h lib/lower/cg.h lib/lower/library.h lib/lower/schedule.h lib/lower/access.h lib/lower/stage.h lib/lower/math.def \
	lib/lower/cg.c lib/lower/number.c lib/lower/param.c lib/lower/dce.c lib/lower/ahead.c lib/lower/share.c lib/lower/value.c lib/lower/convert.c lib/lower/mem.c lib/lower/address.c \
	lib/lower/layout.c lib/lower/place.c lib/lower/cells.c lib/lower/loop.c lib/lower/message.c lib/lower/random.c \
	lib/lower/inspect.c lib/lower/expr.c lib/lower/math.c lib/lower/math_tensor.c lib/lower/library.c lib/lower/stmt.c \
	lib/lower/sync.h lib/lower/sync.c lib/lower/warp.c lib/lower/block.c lib/lower/atom.c \
	lib/lower/shape.c lib/lower/access.c lib/lower/explain.h lib/lower/explain.c lib/lower/stage.c lib/lower/outline.h lib/lower/outline.c lib/lower/prefix.h lib/lower/prefix.c lib/lower/map.h lib/lower/map.c lib/lower/map_form.c lib/lower/map_read.c lib/lower/map_merge.c lib/lower/map_walk.c lib/lower/map_variant.c lib/lower/map_tile.h lib/lower/map_tile.c lib/lower/map_pack.c lib/lower/magic.c lib/lower/naive.c lib/lower/body.c lib/lower/schedule.c \
	lib/lower/row.h lib/lower/row.c lib/lower/row_walk.h lib/lower/row_walk.c lib/lower/row_read.c lib/lower/row_reduce.c lib/lower/row_code.c lib/lower/row_held.c lib/lower/row_loop.c lib/lower/row_fold.c lib/lower/row_meet.c \
	lib/lower/row_scalar.c \
	lib/lower/reduce_int.h lib/lower/reduce.c lib/lower/reduce_form.c lib/lower/reduce_plan.c \
	lib/lower/reduce_walk.c lib/lower/reduce_sweep.c lib/lower/reduce_value.c \
	lib/lower/matmul.c \
	lib/lower/matmul.h \
	lib/lower/matmul_choose.c \
	lib/lower/matmul_cost.c \
	lib/lower/matmul_cost_wgmma.c lib/lower/matmul_choose_wgmma.c \
	lib/lower/matmul_exact.c \
	lib/lower/matmul_expand.c \
	lib/lower/matmul_factor.c \
	lib/lower/matmul_form.c \
	lib/lower/matmul_pairs.c \
	lib/lower/matmul_plan.c \
	lib/lower/matmul_plan.h \
	lib/lower/matmul_rows.c \
	lib/lower/matmul_simt.h lib/lower/matmul_bring.c lib/lower/matmul_simt.c \
	lib/lower/matmul_split.c \
	lib/lower/matmul_store.c lib/lower/matmul_prefetch.c \
	lib/lower/matmul_term.c lib/lower/matmul_thin.c \
	lib/lower/matmul_tile.c \
	lib/lower/matmul_mma.h \
	lib/lower/matmul_mma.c lib/lower/matmul_mma_parts.c lib/lower/matmul_mma_halves.c lib/lower/matmul_mma_sums.c \
	lib/lower/matmul_copy.c \
	lib/lower/matmul_frag.c \
	lib/lower/matmul_wgmma.h \
	lib/lower/matmul_wgmma.c \
	lib/lower/matmul_wgmma_fits.c \
	lib/lower/matmul_wgmma_ring.c \
	lib/lower/matmul_wgmma_load.c \
	lib/lower/matmul_wgmma_sum.c \
	lib/lower/matmul_wgmma_held.c lib/lower/matmul_wgmma_make.c lib/lower/matmul_wgmma_convert.c \
	lib/lower/matmul_wgmma_share.c \
	lib/lower/matmul_wgmma_bring.c lib/lower/matmul_wgmma_columns.c lib/lower/matmul_wgmma_out.c \
	lib/lower/matmul_wgmma_store.c \
	lib/lower/lower.c lib/lower/stats.c lib/lower/candidates.h lib/lower/candidates.c \
	lib/lower/tuned.h lib/lower/tuned.c lib/lower/tuned_file.c

# The math library is kernel-language source, built in: NAME.k becomes  static const char NAME_k[]  in
# NAME.k.h ("lower/NAME.k.h"). Numbers rather than a string literal, whose length C11 limits.
LOWER_K = lib/lower/convert.k lib/lower/math_f32.k lib/lower/math_f64.k lib/lower/math_half.k \
	lib/lower/more_f32.k lib/lower/more_f64.k
BUILT_SOURCES += $(LOWER_K:.k=.k.h)
CLEANFILES += $(LOWER_K:.k=.k.h)
EXTRA_DIST += $(LOWER_K)

%.k.h: %.k
	$(AM_V_GEN)$(MKDIR_P) $(@D) && { \
	  echo "/* made from $(<F) */"; \
	  echo "static const char $(*F)_k[] = {"; \
	  od -An -v -td1 $< | sed 's/  *\(-*[0-9][0-9]*\)/\1,/g'; \
	  echo "0};"; } > $@.tmp && mv $@.tmp $@
