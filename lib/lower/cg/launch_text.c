/* Texts of the launch, put together so that each part keeps its meaning whatever stands beside it. */
#include <config.h>

#include "lower/cg/cg.h"

#include "base/internal.h"

/* The operators by how strongly they bind, as lib/lang/print.c has them; longer ones first. */
enum { LOOSEST = 0, UNARY = 11, PRIMARY = 12 };

struct operator
{
    const char *text;
    int level;
};

static const struct operator operators[] = {
    {"||", 1}, {"&&", 2}, {"==", 6}, {"!=", 6}, {"<=", 7}, {">=", 7}, {"<<", 8},
    {">>", 8}, {"|", 3},  {"^", 4},  {"&", 5},  {"<", 7},  {">", 7},  {"+", 9},
    {"-", 9},  {"*", 10}, {"/", 10}, {"%", 10}, {"?", 0},  {":", 0},
};

/* The operator that the text begins with; NULL: none. */
static const struct operator* operator_at(const char *text)
{
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (strncmp(text, operators[i].text, strlen(operators[i].text)) == 0)
            return &operators[i];
    return NULL;
}

/* The operator that the first n characters of the text end with; NULL: none. */
static const struct operator* operator_before(const char *text, size_t n)
{
    while (n && text[n - 1] == ' ')
        n--;
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++) {
        const size_t length = strlen(operators[i].text);
        if (length <= n && memcmp(text + n - length, operators[i].text, length) == 0)
            return &operators[i];
    }
    return NULL;
}

/* How strongly the loosest operator outside of brackets binds. *only: the operator, if all others as loose are the same. */
static int strength(const char *text, const struct operator** only)
{
    int depth = 0, level = PRIMARY;
    bool operand = true; /* comes next */
    *only = NULL;
    for (const char *c = text; *c; c++) {
        const struct operator* op = depth ? NULL : operator_at(c);
        depth += (*c == '(' || *c == '[') - (*c == ')' || *c == ']');
        if (*c == ' ')
            continue;
        const int found = operand && op ? UNARY : op ? op->level : PRIMARY;
        if (found < level)
            *only = op;
        else if (found == level && op != *only)
            *only = NULL;
        level = found < level ? found : level;
        operand = op != NULL || *c == '!' || *c == '~';
        c += op ? strlen(op->text) - 1 : 0;
    }
    return level;
}

/* Must the part be in brackets between these operators? What % takes the rest of gets them too, for who reads it. */
static bool needs_brackets(const char *part, const struct operator* left,
                           const struct operator* right)
{
    const struct operator* only;
    const int level = strength(part, &only);
    if (right && *right->text != ':' &&
        (level < right->level || (level == right->level && strchr("?%", *right->text))))
        return true;
    if (!left || *left->text == '?' || *left->text == ':' || level > left->level)
        return false;
    const bool any_grouping = *left->text == '+' || left->level <= 2;
    return level < left->level || only != left || !any_grouping;
}

static void put_part(struct buf *b, const char *part, const char *fmt, size_t before,
                     const char *after)
{
    const bool whole =
        needs_brackets(part, operator_before(fmt, before), operator_at(after + strspn(after, " ")));
    buf_printf(b, whole ? "(%s)" : "%s", part);
}

const char *cg_launch_vtext(struct arena *a, const char *fmt, va_list ap)
{
    struct buf b = buf_in(a);
    for (const char *c = fmt; *c; c++)
        if (*c != '%') {
            buf_putc(&b, *c);
        } else if (*++c == '%') {
            buf_putc(&b, '%');
        } else if (*c == 's') {
            const char *part = va_arg(ap, const char *);
            put_part(&b, part, fmt, (size_t)(c - 1 - fmt), c + 1);
        } else if (*c == 'u') {
            buf_printf(&b, "%u", va_arg(ap, unsigned));
        } else if (*c == 'd') {
            buf_printf(&b, "%d", va_arg(ap, int));
        } else if (strncmp(c, "lld", 3) == 0) {
            buf_printf(&b, "%lld", va_arg(ap, long long));
            c += 2;
        } else {
            INTERNAL_ERROR("a launch's text has no conversion '%%%s'", c);
        }
    return buf_text(&b);
}

const char *cg_launch_text(struct arena *a, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *text = cg_launch_vtext(a, fmt, ap);
    va_end(ap);
    return text;
}

const char *cg_launch_product(struct arena *a, const char *x, const char *y)
{
    return x ? cg_launch_text(a, "%s * %s", x, y) : y;
}
