# Shell completions, printed by the tools themselves from their option tables.
COMPLETED_TOOLS = emit run verify bench

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
