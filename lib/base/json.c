#include <config.h>

#include "base/json.h"

#include "base/num.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>

struct json json_in(struct buf *out, int indent)
{
    return (struct json){.out = out, .indent = indent};
}

static void new_line(struct json *j)
{
    if (j->indent)
        buf_printf(j->out, "\n%*s", j->indent * j->depth, "");
}

/* How many bytes the UTF-8 sequence at s has; 0 when it is not one (overlong forms and surrogates
 * are not). */
static size_t utf8_length(const unsigned char *s)
{
    size_t n = s[0] < 0x80   ? 1
               : s[0] < 0xc2 ? 0
               : s[0] < 0xe0 ? 2
               : s[0] < 0xf0 ? 3
               : s[0] < 0xf5 ? 4
                             : 0;
    for (size_t i = 1; i < n; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) ||
        (s[0] == 0xf0 && s[1] < 0x90) || (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return n;
}

static void quoted(struct buf *b, const char *s)
{
    static const char named[] = "\bb\ff\nn\rr\tt\"\"\\\\";
    const unsigned char *p = (const unsigned char *)s;
    buf_putc(b, '"');
    while (*p) {
        size_t n = utf8_length(p);
        const char *escape = NULL;
        for (size_t i = 0; i < sizeof named - 1; i += 2)
            if ((unsigned char)named[i] == *p)
                escape = &named[i + 1];
        if (escape)
            buf_printf(b, "\\%c", *escape);
        else if (*p < 0x20 || *p == 0x7f)
            buf_printf(b, "\\u%04x", *p);
        else if (n == 0)
            buf_puts(b, "\xef\xbf\xbd");
        else
            buf_add(b, (const char *)p, n);
        p += n ? n : 1;
    }
    buf_putc(b, '"');
}

/* The comma, the line and the key that come before a value. */
static void before_value(struct json *j, const char *key)
{
    assert(j->depth == 0 ? !key : j->object[j->depth - 1] == (key != NULL));
    if (j->depth > 0) {
        if (j->filled[j->depth - 1])
            buf_puts(j->out, j->indent ? "," : ", ");
        j->filled[j->depth - 1] = true;
        new_line(j);
    }
    if (key) {
        quoted(j->out, key);
        buf_puts(j->out, ": ");
    }
}

static void open_level(struct json *j, const char *key, bool object)
{
    before_value(j, key);
    assert(j->depth < JSON_DEPTH);
    j->object[j->depth] = object;
    j->filled[j->depth] = false;
    j->depth++;
    buf_putc(j->out, object ? '{' : '[');
}

void json_object(struct json *j, const char *key)
{
    open_level(j, key, true);
}

void json_array(struct json *j, const char *key)
{
    open_level(j, key, false);
}

void json_end(struct json *j)
{
    assert(j->depth > 0);
    j->depth--;
    if (j->filled[j->depth])
        new_line(j);
    buf_putc(j->out, j->object[j->depth] ? '}' : ']');
}

void json_str(struct json *j, const char *key, const char *s)
{
    before_value(j, key);
    if (s)
        quoted(j->out, s);
    else
        buf_puts(j->out, "null");
}

void json_int(struct json *j, const char *key, int64_t v)
{
    before_value(j, key);
    buf_printf(j->out, "%" PRId64, v);
}

void json_uint(struct json *j, const char *key, uint64_t v)
{
    before_value(j, key);
    buf_printf(j->out, "%" PRIu64, v);
}

void json_double(struct json *j, const char *key, double v)
{
    char text[32];
    before_value(j, key);
    buf_puts(j->out, isfinite(v) ? num_print(v, text) : "null");
}

void json_bool(struct json *j, const char *key, bool v)
{
    before_value(j, key);
    buf_puts(j->out, v ? "true" : "false");
}

void json_null(struct json *j, const char *key)
{
    before_value(j, key);
    buf_puts(j->out, "null");
}
