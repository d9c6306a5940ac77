/* Memory: one arena per compilation or run, freed at once.
 *
 * Nothing allocated from an arena is freed on its own. When the machine has no memory left, control
 * goes to the innermost arena_guard() of the arena (see below), so callers never test for NULL;
 * without a guard the process ends, because a library must not go on with half an allocation.
 */
#ifndef KAIO_BASE_ARENA_H
#define KAIO_BASE_ARENA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct arena;

/* NULL when there is no memory for even an empty arena. */
struct arena *arena_new(void);
void arena_free(struct arena *a); /* NULL is allowed */

/* Zeroed, aligned to 16 bytes, never NULL. n = 0 gives a valid pointer. */
void *arena_alloc(struct arena *a, size_t n);
/* n objects of size bytes; a product that overflows counts as no memory. */
void *arena_calloc(struct arena *a, size_t n, size_t size);
/* A larger copy of p (old bytes long); in place when p was the last thing allocated. */
void *arena_grow(struct arena *a, void *p, size_t old, size_t n);
char *arena_strndup(struct arena *a, const char *s, size_t n);
char *arena_strdup(struct arena *a, const char *s);
char *arena_printf(struct arena *a, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
char *arena_vprintf(struct arena *a, const char *fmt, va_list ap)
    __attribute__((format(printf, 2, 0)));

/* if (setjmp(*arena_guard(a))) { out of memory } : the one place where "no memory" is handled. Call
 * arena_unguard() before the function that called setjmp returns. Guards do not nest. */
jmp_buf *arena_guard(struct arena *a);
void arena_unguard(struct arena *a);

/* arena_failure() says that memory asked for from now on was for this ("x"; NULL: for nothing in
 * particular). The text is kept, not copied. */
void arena_purpose(struct arena *a, const char *what);
/* A large piece is not asked for where less memory is left (base/memory.h), for the kernel would
 * promise it, and end the process when it is touched. With overcommit it is. */
void arena_overcommit(struct arena *a, bool overcommit);
/* The arena is a process's only one of many pieces: it takes 2 MB at once where 250 kB are not
 * enough, which is no gain where one arena after the other uses the same memory. */
void arena_large(struct arena *a);
/* After a jump to the guard, what there was no memory for: "x takes 40 GB; the machine has 23.5 GB
 * left". */
const char *arena_failure(const struct arena *a);

/* Takes the failure of an arena that has no guard, or that can't be made, in any thread, and ends
 * the process: a tool's way to say what there is no memory for. Without it arena_new() gives NULL,
 * and the process aborts for anything else. */
void arena_last_words(void (*say)(const char *failure));

/* One object, or n of them, of TYPE. */
#define ARENA_NEW(a, type)      ((type *)arena_alloc((a), sizeof(type)))
#define ARENA_ARRAY(a, n, type) ((type *)arena_calloc((a), (n), sizeof(type)))

/* A growable array in an arena: declare  struct { struct foo *v; size_t n, cap; } foos = {0};
 * VEC_PUSH gives a pointer to a new zeroed element. Pointers to elements die at the next push. */
#define VEC(type)      \
    struct {           \
        type *v;       \
        size_t n, cap; \
    }
#define VEC_PUSH(a, vec)                                                                       \
    ((vec)->n == (vec)->cap                                                                    \
         ? (void)((vec)->v = arena_grow((a), (vec)->v, (vec)->cap * sizeof *(vec)->v,          \
                                        ((vec)->cap ? (vec)->cap * 2 : 8) * sizeof *(vec)->v), \
                  (vec)->cap = (vec)->cap ? (vec)->cap * 2 : 8)                                \
         : (void)0,                                                                            \
     memset(&(vec)->v[(vec)->n], 0, sizeof *(vec)->v), &(vec)->v[(vec)->n++])

/* Room for n elements in all. */
#define VEC_RESERVE(a, vec, most)                                                   \
    ((vec)->cap < (size_t)(most)                                                    \
         ? (void)((vec)->v = arena_grow((a), (vec)->v, (vec)->n * sizeof *(vec)->v, \
                                        (size_t)(most) * sizeof *(vec)->v),         \
                  (vec)->cap = (size_t)(most))                                      \
         : (void)0)

#endif
