# Shell completions, printed by the tools themselves. A tool is listed here once its options are in a table of
# lib/base/cli.h.
COMPLETED_TOOLS = emit bench run

bashcomp_DATA = $(COMPLETED_TOOLS:%=completions/bash/kaio-%)
zshcomp_DATA = $(COMPLETED_TOOLS:%=completions/zsh/_kaio-%)
CLEANFILES += $(bashcomp_DATA) $(zshcomp_DATA)

define COMPLETION_RULES
completions/bash/kaio-$(1): tools/kaio-$(1)/kaio-$(1)$$(EXEEXT)
	$$(AM_V_GEN)$$(MKDIR_P) $$(@D) && tools/kaio-$(1)/kaio-$(1)$$(EXEEXT) --completion=bash > $$@
completions/zsh/_kaio-$(1): tools/kaio-$(1)/kaio-$(1)$$(EXEEXT)
	$$(AM_V_GEN)$$(MKDIR_P) $$(@D) && tools/kaio-$(1)/kaio-$(1)$$(EXEEXT) --completion=zsh > $$@
endef
$(foreach tool,$(COMPLETED_TOOLS),$(eval $(call COMPLETION_RULES,$(tool))))
