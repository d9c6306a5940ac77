/* Where an index runs: written, or the extent of the dimension that it subscripts. */
#include <config.h>

#include "lang/lang_int.h"

/* The extent of the first subscript of e that is the bare name of the index; padded reads count
 * only when nothing else does. */
static struct lang_expr *find_extent(const struct checker *c, const struct lang_expr *e,
                                     const char *name, bool padded)
{
    struct lang_expr *found = NULL;
    const struct lang_symbol *sym = e->kind == E_INDEX ? lang_find(c->scope, e->name) : NULL;
    bool usable = sym && (sym->kind == SYM_BUFFER || sym->kind == SYM_TENSOR) && sym->dims &&
                  sym->rank == e->nargs && (padded || !e->pad);
    for (uint32_t i = 0; i < e->nargs && !found; i++) {
        const struct lang_expr *arg = e->args[i];
        if (usable && arg->kind == E_NAME && strcmp(arg->name, name) == 0)
            return sym->dims[i];
        found = find_extent(c, arg, name, padded);
    }
    if (!found && e->pad)
        found = find_extent(c, e->pad, name, padded);
    for (uint32_t i = 0; i < e->nindex && !found; i++) {
        if (e->index[i]->low)
            found = find_extent(c, e->index[i]->low, name, padded);
        if (!found && e->index[i]->written)
            found = find_extent(c, e->index[i]->dims[0], name, padded);
    }
    return found;
}

bool check_bound(struct checker *c, struct lang_expr *e)
{
    if (!check_expr(c, e) || !check_integer(c, e, "a range's end"))
        return false;
    check_convert(c, e, DT_I64);
    return true;
}

struct lang_expr *index_extent(const struct checker *c, const char *name,
                               const struct lang_expr *within)
{
    struct lang_expr *extent = find_extent(c, within, name, false);
    return extent ? extent : find_extent(c, within, name, true);
}

bool index_has_range(const struct checker *c, const struct lang_symbol *index,
                     const struct lang_expr *within)
{
    return index->written || index_extent(c, index->name, within);
}

bool check_index_range(struct checker *c, struct lang_symbol *index, const struct lang_expr *within)
{
    if (index->written) {
        bool good = !index->low || check_bound(c, index->low);
        return check_bound(c, index->dims[0]) && good;
    }
    struct lang_expr *extent = index_extent(c, index->name, within);
    if (!extent)
        return diag_error(c->d, index->span,
                          "nothing says how far '%s' runs; write its range, as in '%s < n'",
                          index->name, index->name);
    index->dims = ARENA_NEW(c->a, struct lang_expr *);
    index->dims[0] = extent;
    return true;
}

bool range_is_within(const struct lang_expr *range, const struct lang_expr *extent)
{
    int64_t more;
    if (expr_same(range, extent))
        return true;
    if (extent->kind != E_BINARY || extent->op != OP_ADD)
        return false;
    return (lang_const_int(extent->args[1], &more) && more >= 0 &&
            expr_same(range, extent->args[0])) ||
           (lang_const_int(extent->args[0], &more) && more >= 0 &&
            expr_same(range, extent->args[1]));
}
