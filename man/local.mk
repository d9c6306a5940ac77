# manual pages: append to dist_man_MANS
dist_man_MANS += \
	man/kaio.7 man/kaio-bench.1 \
	man/kaio-emit.1 man/kaio-ptx.5 \
	man/kaio-run.1 man/kaio-sim.7 man/kaio-spec.5 man/kaio-verify.1

EXTRA_DIST += man/softmax.svg
