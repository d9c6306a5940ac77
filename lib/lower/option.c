#include <config.h>

#include "lower/option.h"

#include <ctype.h>
#include <stdlib.h>

enum { MOST_COUNT = 4, MOST_FORMS = 16 };

/* ---- what a value may be --------------------------------------------------------------------- */

static const char *number_text(struct arena *a, const struct strategy_option *o)
{
    if (o->is & OPTION_POWER)
        return arena_printf(a, "a power of two from %u to %u", o->least, o->most);
    if (o->is & OPTION_MULTIPLE)
        return arena_printf(a, "a multiple of %u up to %u", o->least, o->most);
    return arena_printf(a, "a number from %u to %u", o->least, o->most);
}

const char *option_values(struct arena *a, const struct strategy_option *o)
{
    const char *form[MOST_FORMS];
    size_t n = 0;
    if (o->is & (OPTION_NUMBER | OPTION_POWER | OPTION_MULTIPLE))
        form[n++] = number_text(a, o);
    if (o->is & OPTION_LIST)
        form[n++] = arena_printf(a, "%s, each from 1 to %u", o->list, o->most);
    for (const struct option_word *w = o->words; w && w->text && n < MOST_FORMS; w++)
        form[n++] = w->text;
    struct buf b = buf_in(a);
    for (size_t i = 0; i < n; i++)
        buf_printf(&b, "%s%s", !i ? "" : i + 1 < n ? ", " : " or ", form[i]);
    return buf_text(&b);
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool read_number(const struct strategy_option *o, const char *text, uint32_t *v)
{
    uint64_t n = 0;
    const char *c = text;
    for (; isdigit((unsigned char)*c) && n <= o->most; c++)
        n = n * 10 + (uint64_t)(*c - '0');
    if (c == text || *c || n < o->least || n > o->most)
        return false;
    *v = (uint32_t)n;
    return o->is & OPTION_POWER      ? (n & (n - 1)) == 0
           : o->is & OPTION_MULTIPLE ? n % o->least == 0
                                     : (o->is & OPTION_NUMBER) != 0;
}

/* [128, 128, 32]: as many numbers as the option has. */
static bool read_list(const struct strategy_option *o, const char *text, uint32_t *v)
{
    const char *c = text;
    bool good = *c++ == '[';
    for (uint32_t i = 0; i < o->count && good; i++) {
        char *end;
        while (isspace((unsigned char)*c))
            c++;
        const unsigned long x = isdigit((unsigned char)*c) ? strtoul(c, &end, 10) : 0;
        good = x >= 1 && x <= o->most;
        for (c = good ? end : c; isspace((unsigned char)*c);)
            c++;
        good = good && *c++ == (i + 1 < o->count ? ',' : ']');
        v[i] = (uint32_t)x;
    }
    return good && !*c;
}

static bool read_word(const struct strategy_option *o, const char *text, uint32_t *v)
{
    for (const struct option_word *w = o->words; w && w->text; w++)
        if (strcmp(w->text, text) == 0) {
            *v = w->value;
            return true;
        }
    return false;
}

static bool read_value(const struct strategy_option *o, const char *text, uint32_t *v)
{
    return read_word(o, text, v) || read_number(o, text, v) ||
           ((o->is & OPTION_LIST) && read_list(o, text, v));
}

bool option_takes(const struct strategy_option *o, const char *text)
{
    uint32_t v[MOST_COUNT];
    return read_value(o, text, v);
}

bool option_read(struct cg *g, const struct strategy_option *o, const struct spec_option *said,
                 void *options)
{
    const uint32_t count = o->count ? o->count : 1;
    uint32_t v[MOST_COUNT] = {0, 1, 1, 1};
    if (!read_value(o, said->value, v))
        return cg_error(g, said->value_span, "'%s' is %s, not '%s'", o->key, option_values(g->a, o),
                        said->value);
    memcpy((char *)options + o->offset, v, count * sizeof *v);
    return true;
}
