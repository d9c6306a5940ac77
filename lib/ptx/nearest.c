/* "Did you mean": the valid mnemonic nearest to one that is not. */
#include <config.h>

#include "ptx/table.h"

enum { MAX_DISTANCE_TEXT = 80 };

static size_t least(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* Insertions, deletions, changes and swaps of neighbours that make a into b; up to
 * MAX_DISTANCE_TEXT letters each. */
static size_t distance(const char *a, size_t an, const char *b, size_t bn)
{
    size_t rows[3][MAX_DISTANCE_TEXT + 1], *before = rows[0], *last = rows[1], *row = rows[2];
    for (size_t j = 0; j <= bn; j++)
        last[j] = j;
    for (size_t i = 1; i <= an; i++) {
        row[0] = i;
        for (size_t j = 1; j <= bn; j++) {
            row[j] = least(least(last[j], row[j - 1]) + 1, last[j - 1] + (a[i - 1] != b[j - 1]));
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                row[j] = least(row[j], before[j - 2] + 1);
        }
        size_t *t = before;
        before = last;
        last = row;
        row = t;
    }
    return last[bn];
}

/* The row's mnemonic that keeps as many of the words given as it can. */
static void form_of(const struct ptx_row *r, const struct ptx_word *w, size_t n, struct buf *out)
{
    bool used[PTX_MAX_WORDS] = {true};
    buf_puts(out, r->name);
    for (unsigned i = 0; i < r->nslot; i++) {
        const struct ptx_slot *s = &r->slot[i];
        const char *best = NULL;
        size_t nearest = SIZE_MAX, by = 0;
        for (size_t k = 1; k < n; k++) {
            for (unsigned j = 0; j < s->nalt && !used[k] && w[k].len <= MAX_DISTANCE_TEXT; j++) {
                const char *alt = ptx_word_text(s->alt[j].word);
                size_t len = strlen(alt), d = distance(w[k].text, w[k].len, alt, len);
                if (d >= nearest || (d && d * 2 > len && s->optional) ||
                    (d && s->optional && d > 1))
                    continue;
                nearest = d;
                best = alt;
                by = k;
            }
        }
        if (!best && s->optional)
            continue;
        if (best && nearest <= 2)
            used[by] = true;
        else
            best = ptx_word_text(s->alt[0].word);
        buf_putc(out, '.');
        buf_puts(out, best);
    }
}

const char *ptx_nearest(struct arena *a, const struct ptx_word *words, size_t n)
{
    struct ptx_word w[PTX_MAX_WORDS];
    memcpy(w, words, n * sizeof *w);
    size_t nrow;
    if (!ptx_rows_of(w[0].text, w[0].len, &nrow)) {
        const char *name = diag_nearest(w[0].text, w[0].len, ptx_names());
        if (!name)
            return NULL;
        w[0] = (struct ptx_word){name, strlen(name)};
    }
    char want[MAX_DISTANCE_TEXT];
    size_t len = 0;
    for (size_t i = 0; i < n; i++) {
        if (len + w[i].len + 1 > sizeof want)
            return NULL;
        if (i)
            want[len++] = '.';
        memcpy(want + len, w[i].text, w[i].len);
        len += w[i].len;
    }
    const struct ptx_row *row = ptx_rows_of(w[0].text, w[0].len, &nrow);
    size_t nearest = SIZE_MAX;
    const char *best = NULL;
    for (size_t k = 0; k < nrow; k++) {
        struct buf form = buf_in(a);
        form_of(&row[k], w, n, &form);
        if (form.len > MAX_DISTANCE_TEXT)
            continue;
        size_t d = distance(want, len, buf_text(&form), form.len);
        if (d < nearest) {
            nearest = d;
            best = buf_text(&form);
        }
    }
    return best;
}
