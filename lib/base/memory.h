/* How much memory is left: asked before memory is promised that the kernel would end the process
 * for touching. */
#ifndef KAIO_BASE_MEMORY_H
#define KAIO_BASE_MEMORY_H

#include <stdint.h>

struct memory_left {
    uint64_t bytes; /* UINT64_MAX: nothing says how many */
    const char *by; /* what sets the limit: "the machine", "its control group", "the limit of
                       address space" */
};

/* The least of what the machine has available with its swap, what the control groups of the process
 * leave, and what RLIMIT_AS leaves. */
struct memory_left memory_left(void);
/* The same with another folder in place of "/", and no RLIMIT_AS: for tests. */
struct memory_left memory_left_in(const char *root);

enum { MEMORY_TEXT = 32 };
/* "1.5 GB": three digits with a unit. */
const char *memory_text(uint64_t bytes, char text[MEMORY_TEXT]);

#endif
