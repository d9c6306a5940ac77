/* The names that C++ makes of functions and of their variables, as the source has them (Itanium C++
 * ABI, 5.1):
 *
 *     _ZZ12block_reducePKfPfiE5s_sum        s_sum in block_reduce
 *     _ZZN3net4tileILi32EEvPfE4part_0       part#2 in net::tile<32>
 *
 * Types of parameters are skipped, and so are template arguments that are no plain types or
 * numbers: <...>. What is not understood to its last letter stays as it is. */
#include <config.h>

#include "sim/report.h"

enum { MOST_DEEP = 64 };

struct dem {
    const char *p;
    struct buf *out;  /* NULL: what is read is not wanted */
    const char *last; /* the last identifier, for constructors */
    size_t nlast;
    unsigned deep;
};

static bool take(struct dem *d, const char *text)
{
    const size_t n = strlen(text);
    if (strncmp(d->p, text, n) != 0)
        return false;
    d->p += n;
    return true;
}

static void put(struct dem *d, const char *text, size_t n)
{
    if (d->out)
        buf_add(d->out, text, n);
}

static bool type(struct dem *d);
static bool encoding(struct dem *d);
static bool name(struct dem *d);

/* Reads without writing; false as read() has it. */
static bool skip(struct dem *d, bool (*read)(struct dem *))
{
    struct dem x = *d;
    x.out = NULL;
    if (++x.deep >= MOST_DEEP || !read(&x))
        return false;
    d->p = x.p;
    return true;
}

static bool number(struct dem *d, size_t *n)
{
    const char *from = d->p;
    for (*n = 0; *d->p >= '0' && *d->p <= '9' && *n < 1 << 20; d->p++)
        *n = *n * 10 + (size_t)(*d->p - '0');
    return d->p > from;
}

/* Namespaces that the source does not name. */
static bool is_nameless(const char *s, size_t n)
{
    return (n >= 8 && memcmp(s, "_GLOBAL_", 8) == 0) ||
           (n >= 10 && memcmp(s, "_INTERNAL_", 10) == 0);
}

/* 12block_reduce */
static bool identifier(struct dem *d)
{
    size_t n;
    if (*d->p == '0' || !number(d, &n) || strnlen(d->p, n) < n)
        return false;
    d->last = d->p;
    d->nlast = n;
    if (!is_nameless(d->p, n))
        put(d, d->p, n);
    d->p += n;
    return true;
}

/* ---- types ----------------------------------------------------------------------------------- */

static const char *builtin(char c)
{
    switch (c) {
    case 'v': return "void";
    case 'w': return "wchar_t";
    case 'b': return "bool";
    case 'c': return "char";
    case 'a': return "signed char";
    case 'h': return "unsigned char";
    case 's': return "short";
    case 't': return "unsigned short";
    case 'i': return "int";
    case 'j': return "unsigned";
    case 'l': return "long";
    case 'm': return "unsigned long";
    case 'x': return "long long";
    case 'y': return "unsigned long long";
    case 'f': return "float";
    case 'd': return "double";
    default: return NULL;
    }
}

/* S_ S1_ St Sa: what came before, and what is in std. Its text is not known here. */
static bool substitution(struct dem *d)
{
    if (!take(d, "S") || !*d->p || d->out)
        return false;
    if (strchr("absiod", *d->p)) {
        d->p++;
        return true;
    }
    while ((*d->p >= '0' && *d->p <= '9') || (*d->p >= 'A' && *d->p <= 'Z'))
        d->p++;
    return take(d, "_");
}

/* T_ T0_: a parameter of a template. */
static bool parameter(struct dem *d)
{
    size_t n;
    if (d->out || !take(d, "T"))
        return false;
    number(d, &n);
    return take(d, "_");
}

/* Li32E Lb1E LN3net4kindE2E */
static bool literal(struct dem *d)
{
    if (!take(d, "L"))
        return false;
    if (take(d, "_Z"))
        return encoding(d) && take(d, "E");
    const bool plain = builtin(*d->p), truth = *d->p == 'b';
    if (!skip(d, type) || (d->out && !plain))
        return false;
    if (take(d, "n"))
        put(d, "-", 1);
    const char *from = d->p;
    d->p += strspn(d->p, "0123456789abcdef");
    if (truth && d->p == from + 1)
        put(d, *from == '1' ? "true" : "false", *from == '1' ? 4 : 5);
    else
        put(d, from, (size_t)(d->p - from));
    return take(d, "E");
}

/* An argument that can be written as it is. */
static bool plain_argument(struct dem *d)
{
    const char *text = builtin(*d->p);
    if (*d->p == 'L')
        return literal(d);
    if (text) {
        d->p++;
        put(d, text, strlen(text));
        return true;
    }
    return *d->p >= '1' && *d->p <= '9' && identifier(d) && *d->p != 'I';
}

static bool argument(struct dem *d)
{
    if (*d->p == 'L')
        return literal(d);
    if (!take(d, "J"))
        return type(d);
    while (!take(d, "E"))
        if (!skip(d, argument))
            return false;
    return true;
}

/* I ... E, whose texts go to b; false: not all of them have one. */
static bool write_arguments(struct dem *d, struct buf *b)
{
    struct dem x = *d;
    x.out = b;
    if (!take(&x, "I"))
        return false;
    for (const char *comma = ""; *x.p != 'E'; comma = ", ") {
        buf_puts(b, comma);
        if (!plain_argument(&x))
            return false;
    }
    d->p = x.p + 1;
    return true;
}

static bool arguments(struct dem *d)
{
    const size_t before = d->out ? d->out->len : 0;
    put(d, "<", 1);
    if (d->out && write_arguments(d, d->out)) {
        put(d, ">", 1);
        return true;
    }
    if (d->out) {
        d->out->len = before;
        put(d, "<...>", 5);
    }
    if (!take(d, "I"))
        return false;
    while (!take(d, "E"))
        if (!skip(d, argument))
            return false;
    return true;
}

static bool arguments_if_any(struct dem *d)
{
    return *d->p != 'I' || skip(d, arguments);
}

/* F i f E, behind the F; A16_f, behind the A; M class member. */
static bool function_type(struct dem *d)
{
    take(d, "Y");
    while (!take(d, "E"))
        if (!skip(d, type))
            return false;
    return true;
}

static bool array_type(struct dem *d)
{
    size_t n;
    number(d, &n);
    return take(d, "_") && skip(d, type);
}

/* Dn Dh Dp Dv4_f ... */
static bool other_type(struct dem *d)
{
    size_t n;
    if (take(d, "p"))
        return skip(d, type);
    if (take(d, "v"))
        return number(d, &n) && take(d, "_") && skip(d, type);
    if (take(d, "F"))
        return number(d, &n) && (take(d, "_") || take(d, "b"));
    return *d->p && strchr("defhsuanic", *d->p++);
}

/* Only skipped. */
static bool type(struct dem *d)
{
    d->p += strspn(d->p, "rVKPROCG");
    switch (*d->p) {
    case 'e':
    case 'g':
    case 'n':
    case 'o':
    case 'z': d->p++; return true;
    case 'D': d->p++; return other_type(d);
    case 'F': d->p++; return function_type(d);
    case 'A': d->p++; return array_type(d);
    case 'M': d->p++; return skip(d, type) && skip(d, type);
    case 'T': return parameter(d) && arguments_if_any(d);
    case 'S':
        if (d->p[1] == 't')
            return name(d);
        return substitution(d) && arguments_if_any(d);
    default: break;
    }
    if (builtin(*d->p)) {
        d->p++;
        return true;
    }
    return skip(d, name);
}

/* ---- names ----------------------------------------------------------------------------------- */

/* UlifE0_: a lambda, behind the Ul. */
static bool lambda(struct dem *d)
{
    size_t n;
    while (!take(d, "E"))
        if (!skip(d, type))
            return false;
    number(d, &n);
    put(d, "(lambda)", 8);
    return take(d, "_");
}

/* One part of a qualified name. */
static bool part(struct dem *d)
{
    take(d, "L"); /* of a file alone */
    if (*d->p >= '1' && *d->p <= '9')
        return identifier(d);
    if (take(d, "Ul"))
        return lambda(d);
    if (take(d, "cl")) {
        put(d, "operator()", 10);
        return true;
    }
    const bool destroys = *d->p == 'D';
    if (!d->nlast || (*d->p != 'C' && !destroys) || d->p[1] < '0' || d->p[1] > '4')
        return false;
    d->p += 2;
    put(d, "~", destroys);
    put(d, d->last, d->nlast);
    return true;
}

/* A part and the :: before it, which one that the source does not name goes without. */
static bool next_part(struct dem *d, bool first)
{
    const size_t before = d->out ? d->out->len : 0, colons = first ? 0 : 2;
    put(d, "::", colons);
    if (take(d, "St"))
        put(d, "std", 3);
    else if (!part(d))
        return false;
    if (d->out && d->out->len == before + colons)
        d->out->len = before;
    return true;
}

/* N ... E, behind the N */
static bool nested(struct dem *d)
{
    const size_t start = d->out ? d->out->len : 0;
    bool any = false;
    d->p += strspn(d->p, "rVKRO");
    for (; !take(d, "E"); any = true) {
        if (*d->p == 'I') {
            if (!any || !arguments(d))
                return false;
        } else if (*d->p == 'T' || (*d->p == 'S' && d->p[1] != 't')) {
            if (any || !(*d->p == 'T' ? parameter(d) : substitution(d)))
                return false;
        } else if (!next_part(d, d->out && d->out->len == start)) {
            return false;
        }
    }
    return any;
}

/* _0 or __12_: the second, the fourteenth of that name */
static bool discriminator(struct dem *d)
{
    size_t n;
    if (!take(d, "_"))
        return true;
    const bool longer = take(d, "_");
    if (!number(d, &n) || (longer && !take(d, "_")))
        return false;
    if (d->out)
        buf_printf(d->out, "#%zu", n + 2);
    return true;
}

/* Z function E variable, behind the Z: the variable comes first. */
static bool local(struct dem *d)
{
    struct dem function = *d;
    if (!skip(d, encoding) || !take(d, "E"))
        return false;
    if (!(take(d, "N") ? nested(d) : part(d)) || !discriminator(d))
        return false;
    put(d, " in ", 4);
    return !d->out || encoding(&function);
}

static bool name(struct dem *d)
{
    if (take(d, "N"))
        return nested(d);
    if (take(d, "Z"))
        return local(d);
    if (take(d, "St"))
        put(d, "std::", 5);
    return part(d) && (*d->p != 'I' || arguments(d));
}

/* A function with the types of its parameters, or a variable. */
static bool encoding(struct dem *d)
{
    if (++d->deep >= MOST_DEEP || !name(d))
        return false;
    while (*d->p && *d->p != 'E')
        if (!skip(d, type))
            return false;
    return true;
}

const char *sim_plain_name(struct arena *a, const char *text)
{
    struct buf b = buf_in(a);
    struct dem d = {.p = text, .out = &b};
    return take(&d, "_Z") && encoding(&d) && !*d.p && b.len ? buf_text(&b) : text;
}
