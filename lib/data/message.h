/* The formats of print() and the records that kernels leave for the host.
 *
 * A format has C's conversions: %d %i %u %x %X %o %c of integers, %f %e %g %a (and %F %E %G %A) of
 * floats, %% for a percent sign; with the flags - + space # 0, a width and a precision. The
 * argument's type says how large it is, so the length modifiers l, ll and z are allowed and mean
 * nothing.
 *
 * A kernel's messages lie in one buffer of little-endian 32-bit words: a header of MESSAGE_HEADER
 * bytes, then records one behind the other. A record is claimed by one atomic addition to the
 * header's `claimed`; one that ends past `capacity` is not written but counted in `lost`, and so is
 * every later one. The host zeroes the buffer, sets the capacity and reads it after the launch.
 *
 *     word 0   id << 10 | thread     the message, from 1; the thread's number in its block (x
 *                                    first)
 *     word 1   blockIdx.x
 *     word 2   blockIdx.z << 16 | blockIdx.y
 *     then     the arguments: 1 word, or 2 (the low one first) for the 64-bit types
 */
#ifndef KAIO_DATA_MESSAGE_H
#define KAIO_DATA_MESSAGE_H

#include "base/buf.h"
#include "data/dtype.h"

struct message_header {
    uint64_t claimed, capacity; /* words */
    uint64_t lost;              /* records */
    uint32_t failed;            /* assertions that did not hold */
    uint32_t last;              /* the greatest id of one that did not */
};
enum {
    MESSAGE_HEADER = sizeof(struct message_header),
    MESSAGE_RECORD = 3, /* words in front of the arguments */
    MESSAGE_THREAD_BITS = 10,
    MESSAGE_MAX_ARGS = 32,
    MESSAGE_MAX_WIDTH = 999, /* of a conversion, and of its precision */
    MESSAGE_MAX_ID = (1 << 22) - 1,
};

enum message_item { MESSAGE_END, MESSAGE_CONVERSION, MESSAGE_BAD };
struct message_conversion {
    size_t off, len; /* in the format */
    char letter;
    char flags[6];        /* each at most once */
    int width, precision; /* -1: not given */
    const char *why;      /* MESSAGE_BAD: what is wrong with it */
};
/* The next conversion at or behind *at, which moves past it; %% is none. */
enum message_item message_next(const char *format, size_t *at, struct message_conversion *c);

/* Why a conversion can't print a value of this type and what can, or NULL when it can. */
const char *message_misfit(char letter, enum dtype t);
/* The type as which a value of type t travels: i32 u32 i64 u64 f32 f64; DT_VOID for none. */
enum dtype message_type(enum dtype t);
unsigned message_words(enum dtype travels);
/* The words of n arguments. */
unsigned message_args_words(size_t n, const enum dtype *travels);

/* Appends the text of a record: the format, which must fit the types, over the argument words. The
 * locale plays no part. */
void message_print(const char *format, const enum dtype *travels, const uint32_t *words,
                   struct buf *out);

#endif
