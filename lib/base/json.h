/* JSON written in one pass into a text buffer.
 *
 *     struct json j = json_in(&buf, 2);
 *     json_object(&j, NULL);
 *     json_str(&j, "kernel", "saxpy");
 *     json_array(&j, "sizes");
 *     json_int(&j, NULL, 1024);
 *     json_end(&j);
 *     json_end(&j);                       the newline after the last bracket is the caller's
 *
 * key: the member's name inside an object, NULL inside an array and at the top. */
#ifndef KAIO_BASE_JSON_H
#define KAIO_BASE_JSON_H

#include "base/buf.h"

enum {
    JSON_DEPTH = 32
}; /* nesting is the program's, never the input's: deeper is a bug, and asserts */

struct json {
    struct buf *out;
    int indent; /* spaces per level; 0: all on one line */
    int depth;
    bool object[JSON_DEPTH], filled[JSON_DEPTH];
};

struct json json_in(struct buf *out, int indent);
void json_object(struct json *j, const char *key);
void json_array(struct json *j, const char *key);
void json_end(struct json *j); /* closes the innermost object or array */
/* NULL is written as null; bytes that are not UTF-8 as U+FFFD. */
void json_str(struct json *j, const char *key, const char *s);
void json_int(struct json *j, const char *key, int64_t v);
void json_uint(struct json *j, const char *key, uint64_t v);
/* The shortest text that reads back as v. NaN and the infinities, which JSON lacks, are null. */
void json_double(struct json *j, const char *key, double v);
void json_bool(struct json *j, const char *key, bool v);
void json_null(struct json *j, const char *key);

#endif
