/* Which device: "auto", "cuda", "cuda:1", "cpu". */
#ifndef KAIO_RUN_CHOOSE_H
#define KAIO_RUN_CHOOSE_H

#include "run/device.h"

struct device_choice {
    const struct device_ops *ops; /* NULL: auto, not settled yet */
    int ordinal;
};

/* False when the text names no device. */
bool device_parse(const char *text, struct device_choice *out);
/* Settles auto: the first GPU if there is one, else the simulator. *why, when the simulator was
 * taken for want of a GPU, says what is missing (in the arena); else NULL. */
void device_settle(struct arena *a, struct device_choice *c, const char **why);

/* "memory,race", or "all", as bits of enum device_check. False when a word is none of them: it is
 * at *bad, *len long. */
bool device_parse_check(const char *text, unsigned *bits, const char **bad, size_t *len);

#endif
