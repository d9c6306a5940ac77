# manual pages: append to dist_man_MANS
dist_man_MANS += \
	man/kaio.7 man/kaio-bench.1 \
	man/kaio-emit.1 man/kaio-program.5 man/kaio-ptx.5 \
	man/kaio-run.1 man/kaio-sim.7 man/kaio-spec.5 man/kaio-verify.1

EXTRA_DIST += man/softmax.svg man/terminal.svg man/terminal.sh man/page.css

# 'make html': the pages for a browser, with links between them. It needs mandoc.
html-local:
	$(AM_V_GEN)$(MKDIR_P) html && cp $(srcdir)/man/page.css html/ && \
	for page in $(dist_man_MANS); do \
		mandoc -T html -O style=page.css,man=%N.%S.html,toc "$(srcdir)/$$page" >"html/$$(basename "$$page").html" || exit; \
	done && \
	cp html/kaio.7.html html/index.html

clean-local:
	rm -rf html
