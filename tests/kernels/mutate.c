#include <config.h>

#include "kernels/mutate.h"

#include "base/buf.h"

#include <ctype.h>

struct word {
    const char *s;
    size_t n;
};

struct words {
    struct arena *a;
    VEC(struct word) list;
};

/* Names and numbers whole, everything else by the character, so that operators can be broken,
 * too. */
static void split(struct words *w, const char *s)
{
    while (*s) {
        size_t n = 1;
        bool word = isalnum((unsigned char)*s) || *s == '_';
        while (word && (isalnum((unsigned char)s[n]) || s[n] == '_' || s[n] == '.'))
            n++;
        while (*s == ' ' && s[n] == ' ')
            n++;
        *VEC_PUSH(w->a, &w->list) = (struct word){s, n};
        s += n;
    }
}

static const char *const words[] = {"0",
                                    "1",
                                    "-1",
                                    "2147483648",
                                    "18446744073709551615ul",
                                    "1e30",
                                    "nan",
                                    "inf",
                                    "true",
                                    "f16",
                                    "u64",
                                    "bool",
                                    "f32x4",
                                    "i8x16",
                                    "u32x2",
                                    "break;",
                                    "continue;",
                                    "return;",
                                    "{",
                                    "}",
                                    "(",
                                    ")",
                                    "[",
                                    "]",
                                    "__syncthreads()",
                                    "tid",
                                    "n",
                                    "threadIdx.x",
                                    "laneid",
                                    "++",
                                    "<<",
                                    "&&",
                                    "?",
                                    ":",
                                    ";",
                                    ",",
                                    "shared",
                                    "const",
                                    "auto",
                                    "else",
                                    "while (true)",
                                    "#pragma unroll\n",
                                    "switch",
                                    "case 1:",
                                    "default:",
                                    "&",
                                    "\"text\"",
                                    "atomic_add",
                                    "load4",
                                    "store2",
                                    "philox(1, 2)",
                                    "blockDim.x",
                                    ".x",
                                    "[3]",
                                    "= {}",
                                    "= {1, 2}",
                                    "f16(",
                                    "%",
                                    "assert(",
                                    "print(\"%d\", ",
                                    "as_f32(",
                                    "bfe(",
                                    "min(",
                                    "fast_exp("};

static struct word invented(struct random *r)
{
    const char *s = words[random_below(r, sizeof words / sizeof *words)];
    return (struct word){s, strlen(s)};
}

static void damage(struct words *w, struct random *r)
{
    unsigned n = (unsigned)w->list.n, i = random_below(r, n), k = random_below(r, n);
    struct word *v = w->list.v, was = v[i];
    switch (random_below(r, 6)) {
    case 0: v[i].n = 0; break;
    case 1: v[i] = v[k]; break;
    case 2: v[i] = invented(r); break;
    case 3:
        v[i] = v[k];
        v[k] = was;
        break;
    case 4: /* a run of words */
        for (unsigned j = i; j < n && j < i + random_below(r, 20); j++)
            v[j].n = 0;
        break;
    default: /* another name or number in place of one */
        for (unsigned tries = 0; tries < 50 && !isalnum((unsigned char)*v[i].s); tries++)
            i = random_below(r, n);
        for (unsigned tries = 0; tries < 50 && !isalnum((unsigned char)*v[k].s); tries++)
            k = random_below(r, n);
        v[i] = v[k];
        break;
    }
}

const char *mutate_kernel(struct arena *a, const char *text, struct random *r)
{
    const char *from = strstr(text, "\nfunctions: |\n"), *to = strstr(text, "\ncases:");
    struct words w = {.a = a};
    struct buf b = buf_in(a);
    if (!from || random_one_in(r, 2))
        from = strstr(text, "\nbody: |\n");
    if (!from || !to)
        return text;
    from = strchr(from + 1, '\n') + 1;
    split(&w, arena_strndup(a, from, (size_t)(to - from)));
    for (unsigned n = random_one_in(r, 2) ? 1 : 1 + random_below(r, 3); n > 0; n--)
        damage(&w, r);
    buf_add(&b, text, (size_t)(from - text));
    for (size_t i = 0; i < w.list.n; i++)
        buf_add(&b, w.list.v[i].s, w.list.v[i].n);
    buf_puts(&b, to);
    return buf_text(&b);
}
