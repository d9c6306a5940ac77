/* The math library: kernel-language functions that the emitter inlines. Private to lib/lower. */
#ifndef KAIO_LOWER_LIBRARY_H
#define KAIO_LOWER_LIBRARY_H

#include "lang/lang.h"

struct library;

/* Nothing is parsed before it is asked for. */
struct library *library_new(struct arena *a);
/* "exp_f32". NULL when there is none. */
const struct lang_func *library_find(struct library *l, const char *name);

#endif
