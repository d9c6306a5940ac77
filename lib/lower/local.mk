lib_libkaiocore_la_SOURCES += \
	lib/lower/access.h lib/lower/advice.h lib/lower/candidates.h lib/lower/costly.h lib/lower/explain.h lib/lower/extent.h lib/lower/inouts.h lib/lower/lift.h lib/lower/lower.h lib/lower/narrow.h lib/lower/option.h lib/lower/outline.h lib/lower/phases.h \
	lib/lower/prefix.h lib/lower/regroup.h lib/lower/report.h lib/lower/schedule.h lib/lower/stage.h lib/lower/strategies.def lib/lower/strategy.h lib/lower/tuned.h \
	lib/lower/variant.h lib/lower/access.c lib/lower/advice.c lib/lower/body.c lib/lower/candidates.c lib/lower/costly.c lib/lower/explain.c lib/lower/extent.c \
	lib/lower/inouts.c lib/lower/lift.c lib/lower/lower.c lib/lower/naive.c lib/lower/narrow.c lib/lower/option.c lib/lower/outline.c lib/lower/prefix.c lib/lower/regroup.c lib/lower/report.c lib/lower/schedule.c lib/lower/phases.c \
	lib/lower/shape.c lib/lower/stage.c lib/lower/stats.c lib/lower/tuned.c lib/lower/tuned_file.c \
	lib/lower/variant.c \
	lib/lower/cg/cg.h lib/lower/cg/inspect.h lib/lower/cg/library.h lib/lower/cg/sync.h lib/lower/cg/address.c \
	lib/lower/cg/atom.c lib/lower/cg/block.c lib/lower/cg/cells.c lib/lower/cg/cg.c lib/lower/cg/convert.c \
	lib/lower/cg/explain.c lib/lower/cg/expr.c lib/lower/cg/inspect.c lib/lower/cg/layout.c \
	lib/lower/cg/library.c lib/lower/cg/loop.c lib/lower/cg/magic.c lib/lower/cg/math.c \
	lib/lower/cg/math_tensor.c lib/lower/cg/mem.c lib/lower/cg/message.c lib/lower/cg/number.c \
	lib/lower/cg/param.c lib/lower/cg/place.c lib/lower/cg/random.c lib/lower/cg/stmt.c lib/lower/cg/sync.c \
	lib/lower/cg/value.c lib/lower/cg/warp.c \
	lib/lower/pass/pass.h lib/lower/pass/ahead.c lib/lower/pass/dce.c lib/lower/pass/hoist.c \
	lib/lower/map/map.h lib/lower/map/loops.h lib/lower/map/tile.h lib/lower/map/form.c lib/lower/map/loops.c \
	lib/lower/map/map.c lib/lower/map/merge.c \
	lib/lower/map/pack.c lib/lower/map/read.c lib/lower/map/strategy.c lib/lower/map/short.c lib/lower/map/survey.c lib/lower/map/tile.c \
	lib/lower/map/walk.c lib/lower/map/window.c \
	lib/lower/row/row.h lib/lower/row/walk.h lib/lower/row/code.c lib/lower/row/fold.c lib/lower/row/held.c \
	lib/lower/row/loop.c lib/lower/row/meet.c lib/lower/row/read.c lib/lower/row/reduce.c lib/lower/row/row.c \
	lib/lower/row/scalar.c lib/lower/row/strategy.c lib/lower/row/walk.c \
	lib/lower/reduce/reduce.h lib/lower/reduce/form.c lib/lower/reduce/loops.c lib/lower/reduce/place.c \
	lib/lower/reduce/open.c lib/lower/reduce/plan.c lib/lower/reduce/reduce.c lib/lower/reduce/tile.c \
	lib/lower/reduce/strategy.c lib/lower/reduce/sweep.c lib/lower/reduce/value.c lib/lower/reduce/walk.c \
	lib/lower/scan/scan.h lib/lower/scan/column.c lib/lower/scan/form.c lib/lower/scan/look.c lib/lower/scan/plan.c lib/lower/scan/row.c \
	lib/lower/scan/strategy.c lib/lower/scan/value.c \
	lib/lower/chain/chain.h lib/lower/chain/form.h lib/lower/chain/anew.c lib/lower/chain/any.c lib/lower/chain/begin.c lib/lower/chain/bring.c lib/lower/chain/columns.c lib/lower/chain/form.c lib/lower/chain/pack.c lib/lower/chain/pair.c lib/lower/chain/products.c lib/lower/chain/range.c lib/lower/chain/runs.c lib/lower/chain/running.c lib/lower/chain/candidates.c lib/lower/chain/choose.c lib/lower/chain/cost.c \
	lib/lower/chain/along.c lib/lower/chain/end.c lib/lower/chain/fall.c lib/lower/chain/lift.c lib/lower/chain/losses.c lib/lower/chain/rough.c lib/lower/chain/mma.c lib/lower/chain/walk.c lib/lower/chain/multiply.c lib/lower/chain/narrow.c lib/lower/chain/split.c lib/lower/chain/store.c lib/lower/chain/strategy.c lib/lower/chain/rows.c lib/lower/chain/skip.c lib/lower/chain/repair.c lib/lower/chain/tile.c lib/lower/chain/words.c \
	lib/lower/chain/mma.h lib/lower/chain/wgmma.h lib/lower/chain/fits.c lib/lower/chain/across.c lib/lower/chain/gather.c lib/lower/chain/items.c lib/lower/chain/load.c lib/lower/chain/turn.c lib/lower/chain/sheets.c lib/lower/chain/wgmma.c \
	lib/lower/matmul/matmul.h lib/lower/matmul/plan.h lib/lower/matmul/choose.c lib/lower/matmul/choose_wgmma.c \
	lib/lower/matmul/cost.c lib/lower/matmul/cost_wgmma.c lib/lower/matmul/exact.c lib/lower/matmul/boxes.c lib/lower/matmul/expand.c \
	lib/lower/matmul/factor.c lib/lower/matmul/fold.c lib/lower/matmul/form.c lib/lower/matmul/gather.c lib/lower/matmul/matmul.c lib/lower/matmul/mend.c lib/lower/matmul/mixed.c lib/lower/matmul/pairs.c \
	lib/lower/matmul/parts.c lib/lower/matmul/plan.c lib/lower/matmul/prefetch.c lib/lower/matmul/rows.c lib/lower/matmul/split.c \
	lib/lower/matmul/store.c lib/lower/matmul/strategy.c lib/lower/matmul/term.c lib/lower/matmul/tile.c lib/lower/matmul/turn.c lib/lower/matmul/turn.h lib/lower/matmul/turn_rows.c lib/lower/matmul/turn_worth.c \
	lib/lower/simt/simt.h lib/lower/simt/bring.c lib/lower/simt/simt.c lib/lower/simt/thin.c \
	lib/lower/mma/as_f16.c lib/lower/mma/copy.c lib/lower/mma/frag.c lib/lower/mma/fragment.c \
	lib/lower/mma/fragment.h lib/lower/mma/mma.c lib/lower/mma/mma.h lib/lower/mma/parts.c lib/lower/mma/range.c \
	lib/lower/mma/products.c lib/lower/mma/products.h lib/lower/mma/sums.c \
	lib/lower/wgmma/box.c lib/lower/wgmma/box.h lib/lower/wgmma/columns.c lib/lower/wgmma/convert.c \
	lib/lower/wgmma/epilogue.c lib/lower/wgmma/fits.c lib/lower/wgmma/gather.c lib/lower/wgmma/held.c lib/lower/wgmma/load.c \
	lib/lower/wgmma/make.c lib/lower/wgmma/out.c lib/lower/wgmma/products.c lib/lower/wgmma/products.h \
	lib/lower/wgmma/ring.c lib/lower/wgmma/ring.h lib/lower/wgmma/scales.c lib/lower/wgmma/share.c lib/lower/wgmma/small.c lib/lower/wgmma/store.c \
	lib/lower/wgmma/sum.c lib/lower/wgmma/tma.c lib/lower/wgmma/tma.h lib/lower/wgmma/wgmma.c \
	lib/lower/wgmma/wgmma.h

# The math library is kernel-language source, built in: NAME.k becomes  static const char NAME_k[]  in
# NAME.k.h ("lower/mathlib/NAME.k.h"). Numbers rather than a string literal, whose length C11 limits.
LOWER_K = lib/lower/mathlib/convert.k lib/lower/mathlib/f32.k lib/lower/mathlib/f64.k lib/lower/mathlib/half.k \
	lib/lower/mathlib/more_f32.k lib/lower/mathlib/more_f64.k
BUILT_SOURCES += $(LOWER_K:.k=.k.h)
CLEANFILES += $(LOWER_K:.k=.k.h)
EXTRA_DIST += $(LOWER_K)

%.k.h: %.k
	$(AM_V_GEN)$(MKDIR_P) $(@D) && { \
	  echo "/* made from $(<F) */"; \
	  echo "static const char $(*F)_k[] = {"; \
	  od -An -v -td1 $< | sed 's/  *\(-*[0-9][0-9]*\)/\1,/g'; \
	  echo "0};"; } > $@.tmp && mv $@.tmp $@
