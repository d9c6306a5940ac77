# sources of lib/lower: append to lib_libkaiocore_la_SOURCES

# The math library is kernel-language source, built in: NAME.k becomes  static const char NAME_k[]  in
# NAME.k.h ("lower/NAME.k.h"). Numbers rather than a string literal, whose length C11 limits.
LOWER_K =
BUILT_SOURCES += $(LOWER_K:.k=.k.h)
CLEANFILES += $(LOWER_K:.k=.k.h)
EXTRA_DIST += $(LOWER_K)

%.k.h: %.k
	$(AM_V_GEN)$(MKDIR_P) $(@D) && { \
	  echo "/* made from $(<F) */"; \
	  echo "static const char $(*F)_k[] = {"; \
	  od -An -v -td1 $< | sed 's/  *\(-*[0-9][0-9]*\)/\1,/g'; \
	  echo "0};"; } > $@.tmp && mv $@.tmp $@
