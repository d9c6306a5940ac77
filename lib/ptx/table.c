#include <config.h>

#include "ptx/table.h"
#include "base/internal.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* ---- the constant part ----------------------------------------------------------------------- */

static const struct {
    const char *text;
    enum ptx_mod_class cls;
} mods[PTX_MOD_COUNT] = {
    [PTX_NONE] = {"", PTX_MC_COUNT},
#define PTX_MOD(NAME, text, cls) [PTX_##NAME] = {text, PTX_MC_##cls},
#include "ptx/isa.def"
};

static const char *const class_names[PTX_MC_COUNT] = {
#define PTX_CLASS(NAME) [PTX_MC_##NAME] = #NAME,
#include "ptx/isa.def"
};

static const struct {
    const char *text;
    enum ptx_mod type;
    uint16_t min_ptx, min_sm;
} sregs[PTX_SR_COUNT] = {
#define PTX_SREG(NAME, text, type, ptx, sm) [PTX_SR_##NAME] = {text, PTX_##type, ptx, sm},
#include "ptx/isa.def"
};

static const struct {
    const char *pattern, *operands;
    uint16_t min_ptx, min_sm;
    uint8_t family;
} ops[PTX_OP_COUNT] = {
#define PTX_OP(NAME, FAMILY, pattern, operands, ptx, sm) \
    [PTX_OP_##NAME] = {pattern, operands, ptx, sm, PTX_FAMILY_##FAMILY},
#include "ptx/isa.def"
};

enum { PTX_TRAIT_ACTS = 1, PTX_TRAIT_WIDE = 2 };
static const uint8_t traits_of[PTX_FAMILY_COUNT] = {
#define PTX_FAMILY(NAME, traits) [PTX_FAMILY_##NAME] = (traits),
#include "ptx/isa.def"
};

static const struct ptx_shape shapes[PTX_MOD_COUNT] = {
#define PTX_SHAPE(m, n, k) [PTX_M##m##N##n##K##k] = {m, n, k},
#include "ptx/isa.def"
};

/* ---- the table made from it ------------------------------------------------------------------ */

enum {
    /* No pattern has more words than half its letters. */
    PATTERN_BYTES = 0
#define PTX_OP(NAME, FAMILY, pattern, operands, ptx, sm) +(int)sizeof(pattern)
#include "ptx/isa.def"
    ,
    MAX_ALTS = PATTERN_BYTES / 2,
    /* powers of two, well over the number of words, and of names and of special registers */
    HASH_SIZE = 2048,
    FEW_SIZE = 512,
    MAX_NAMES = PTX_OP_COUNT
};

/* Equal text under several classes (and as a mere word) is one word. */
struct word {
    const char *text; /* NUL-terminated */
    size_t len;
    uint16_t mod; /* the first modifier with that text; further ones through next_mod */
};

static struct {
    struct ptx_row row[PTX_OP_COUNT];
    struct ptx_slot slot[MAX_ALTS];
    struct ptx_alt alt[MAX_ALTS];
    size_t nslot, nalt;
    char text[PATTERN_BYTES]; /* names and mere words, each with its NUL */
    size_t ntext;

    struct word word[HASH_SIZE]; /* open addressing; the index is the word's number */
    uint16_t next_mod[PTX_MOD_COUNT];

    struct {
        const char *text;
        size_t len;
        uint16_t first, n; /* rows */
    } name[FEW_SIZE];      /* open addressing */
    const char *names[MAX_NAMES + 1];

    uint16_t sreg[FEW_SIZE]; /* open addressing, number + 1 */
} table;
static pthread_once_t table_once = PTHREAD_ONCE_INIT;
static atomic_bool table_made; /* asked for each instruction: pthread_once() is a call */

static unsigned hash(const char *s, size_t n)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < n; i++)
        h = (h ^ (unsigned char)s[i]) * 16777619u;
    return (h ^ (h >> 15)) & (HASH_SIZE - 1);
}

static bool same(const char *a, size_t an, const char *b, size_t bn)
{
    return an == bn && memcmp(a, b, an) == 0;
}

static unsigned word_place(const char *text, size_t len)
{
    unsigned h = hash(text, len);
    while (table.word[h].text && !same(table.word[h].text, table.word[h].len, text, len))
        h = (h + 1) & (HASH_SIZE - 1);
    return h;
}

static const char *keep(const char *text, size_t len)
{
    char *t = table.text + table.ntext;
    memcpy(t, text, len);
    table.ntext += len + 1;
    return t;
}

/* The number of the word; a new one's text is copied. */
static unsigned word_intern(const char *text, size_t len)
{
    unsigned h = word_place(text, len);
    if (!table.word[h].text) {
        table.word[h].text = keep(text, len);
        table.word[h].len = len;
    }
    return h;
}

static void make_words(void)
{
    /* Backwards, so that the chain of one text is in the order of isa.def. */
    for (unsigned m = PTX_MOD_COUNT - 1; m > PTX_NONE; m--) {
        unsigned w = word_place(mods[m].text, strlen(mods[m].text));
        table.word[w].text = mods[m].text;
        table.word[w].len = strlen(mods[m].text);
        table.next_mod[m] = table.word[w].mod;
        table.word[w].mod = (uint16_t)m;
    }
}

static enum ptx_mod mod_in_class(unsigned word, unsigned cls)
{
    for (unsigned m = table.word[word].mod; m != PTX_NONE; m = table.next_mod[m])
        if (mods[m].cls == cls)
            return (enum ptx_mod)m;
    return PTX_NONE;
}

/* The first class that has all words of the slot and is not taken in this row. */
static unsigned slot_class(const struct ptx_slot *s, const bool *taken)
{
    for (unsigned m = table.word[s->alt[0].word].mod; m != PTX_NONE; m = table.next_mod[m]) {
        unsigned cls = mods[m].cls;
        if (taken[cls] && cls != PTX_MC_TYPE)
            continue;
        bool all = true;
        for (unsigned i = 1; i < s->nalt && all; i++)
            all = mod_in_class(s->alt[i].word, cls) != PTX_NONE;
        if (all)
            return cls;
    }
    return PTX_MC_COUNT;
}

static unsigned class_find(const char *s, size_t n)
{
    for (unsigned c = 0; c < PTX_MC_COUNT; c++)
        if (same(class_names[c], strlen(class_names[c]), s, n))
            return c;
    return PTX_MC_COUNT;
}

/* One word of a slot, with its own minima behind @; returns where it ends. */
static const char *make_alt(const char *p, struct ptx_slot *s)
{
    size_t n = strcspn(p, "|}.?@");
    struct ptx_alt *a = &table.alt[table.nalt++];
    a->word = (uint16_t)word_intern(p, n);
    s->nalt++;
    p += n;
    if (*p == '@') {
        char *end;
        a->min_ptx = (uint16_t)strtoul(p + 1, &end, 10);
        a->min_sm = (uint16_t)strtoul(end + 1, &end, 10);
        s->has_minima = true;
        p = end;
    }
    return p;
}

static void make_slots(struct ptx_row *r)
{
    bool taken[PTX_MC_COUNT] = {false};
    struct ptx_slot *first = &table.slot[table.nslot];
    const char *p = r->pattern + r->name_len;
    while (*p == '.') {
        struct ptx_slot *s = &table.slot[table.nslot++];
        unsigned cls = PTX_MC_COUNT;
        s->alt = &table.alt[table.nalt];
        p++;
        if (*p == '{') {
            size_t n = strcspn(++p, ":|}");
            if (p[n] == ':' && p[n + 1] != ':') {
                cls = class_find(p, n);
                p += n + 1;
            }
            for (p = make_alt(p, s); *p == '|';)
                p = make_alt(p + 1, s);
            if (*p++ != '}')
                INTERNAL_ERROR("isa.def: %s: a brace is not closed", r->pattern);
        } else {
            p = make_alt(p, s);
        }
        if (*p == '?') {
            s->optional = true;
            p++;
        }
        if (cls == PTX_MC_COUNT)
            cls = slot_class(s, taken);
        if (cls == PTX_MC_COUNT && (s->nalt > 1 || s->optional))
            INTERNAL_ERROR("isa.def: %s: a choice between words of different classes", r->pattern);
        s->cls = (uint8_t)cls;
        r->has_minima |= s->has_minima;
        if (cls != PTX_MC_COUNT)
            taken[cls] = true;
        for (unsigned i = 0; i < s->nalt && cls != PTX_MC_COUNT; i++) {
            struct ptx_alt *a = &table.alt[(size_t)(s->alt - table.alt) + i];
            a->mod = (uint16_t)mod_in_class(a->word, cls);
        }
    }
    if (*p)
        INTERNAL_ERROR("isa.def: %s: something is left over", r->pattern);
    r->slot = first;
    r->nslot = (uint8_t)(&table.slot[table.nslot] - first);
}

static void make_specs(struct ptx_row *r)
{
    const char *p = r->operands;
    r->is_plain = true;
    while (*p) {
        struct ptx_spec *s = &r->spec[r->nspec++];
        if (*p == '=') {
            s->dest = true;
            r->writes |= (uint8_t)(1u << (s - r->spec));
            p++;
        }
        size_t n = strcspn(p, "*?_,");
        if (n == 1) {
            s->kind = *p;
        } else {
            s->kind = '=';
            s->type = (uint16_t)mod_in_class(word_place(p, n), PTX_MC_TYPE);
            if (s->type == PTX_NONE)
                INTERNAL_ERROR("isa.def: %s: unknown operand", r->operands);
        }
        p += n;
        if (*p == '*') {
            char *end;
            s->group = (uint16_t)strtoul(p + 1, &end, 10);
            p = end;
        }
        for (; *p == '?' || *p == '_'; p++)
            *(*p == '?' ? &s->optional : &s->sink) = true;
        r->is_plain &= !s->optional && !strchr("hky", s->kind);
        if (*p == ',')
            p++;
    }
}

static unsigned name_place(const char *name, size_t len)
{
    unsigned h = hash(name, len) % FEW_SIZE;
    while (table.name[h].text && !same(table.name[h].text, table.name[h].len, name, len))
        h = (h + 1) % FEW_SIZE;
    return h;
}

static void make_rows(void)
{
    size_t nname = 0;
    for (unsigned op = 0; op < PTX_OP_COUNT; op++) {
        struct ptx_row *r = &table.row[op];
        r->pattern = ops[op].pattern;
        r->operands = ops[op].operands;
        r->min_ptx = ops[op].min_ptx;
        r->min_sm = ops[op].min_sm;
        r->name_len = strcspn(r->pattern, ".");
        make_slots(r);
        make_specs(r);

        unsigned h = name_place(r->pattern, r->name_len);
        if (!table.name[h].text) {
            table.name[h].text = keep(r->pattern, r->name_len);
            table.name[h].len = r->name_len;
            table.name[h].first = (uint16_t)op;
            table.names[nname++] = table.name[h].text;
        } else if (table.name[h].first + table.name[h].n != op) {
            INTERNAL_ERROR("isa.def: %s: the rows of one name are not together", r->pattern);
        }
        r->name = table.name[h].text;
        table.name[h].n++;
    }
}

static void make_table(void)
{
    make_words();
    make_rows();
    for (unsigned r = 0; r < PTX_SR_COUNT; r++) {
        unsigned h = hash(sregs[r].text, strlen(sregs[r].text)) % FEW_SIZE;
        while (table.sreg[h])
            h = (h + 1) % FEW_SIZE;
        table.sreg[h] = (uint16_t)(r + 1);
    }
    atomic_store_explicit(&table_made, true, memory_order_release);
}

static void need_table(void)
{
    if (!atomic_load_explicit(&table_made, memory_order_acquire))
        pthread_once(&table_once, make_table);
}

/* ---- looking up ------------------------------------------------------------------------------ */

const struct ptx_row *ptx_row(enum ptx_op op)
{
    need_table();
    return &table.row[op];
}

const char *ptx_mod_text(enum ptx_mod m)
{
    return mods[m].text;
}

enum ptx_mod_class ptx_mod_class(enum ptx_mod m)
{
    return mods[m].cls;
}

struct ptx_shape ptx_shape(const struct ptx_inst *in)
{
    return shapes[in->mod[PTX_MC_SHAPE]];
}

const char *ptx_op_name(enum ptx_op op)
{
    return ptx_row(op)->name;
}

const char *ptx_op_pattern(enum ptx_op op)
{
    return ops[op].pattern;
}

const char *ptx_op_operands(enum ptx_op op)
{
    return ops[op].operands;
}

enum ptx_family ptx_op_family(enum ptx_op op)
{
    return ops[op].family;
}

unsigned ptx_op_writes(enum ptx_op op)
{
    return ptx_row(op)->writes;
}

bool ptx_op_acts(enum ptx_op op)
{
    return traits_of[ops[op].family] & PTX_TRAIT_ACTS;
}

bool ptx_op_wide(enum ptx_op op)
{
    return traits_of[ops[op].family] & PTX_TRAIT_WIDE;
}

unsigned ptx_op_min_ptx(enum ptx_op op)
{
    return ops[op].min_ptx;
}

unsigned ptx_op_min_sm(enum ptx_op op)
{
    return ops[op].min_sm % 1000;
}

const char *ptx_sreg_text(enum ptx_sreg r)
{
    return sregs[r].text;
}

enum ptx_mod ptx_sreg_type(enum ptx_sreg r)
{
    return sregs[r].type;
}

unsigned ptx_sreg_min_ptx(enum ptx_sreg r)
{
    return sregs[r].min_ptx;
}

unsigned ptx_sreg_min_sm(enum ptx_sreg r)
{
    return sregs[r].min_sm;
}

enum ptx_sreg ptx_sreg_find(const char *name, size_t len)
{
    need_table();
    for (unsigned h = hash(name, len) % FEW_SIZE; table.sreg[h]; h = (h + 1) % FEW_SIZE) {
        unsigned r = table.sreg[h] - 1u;
        if (same(sregs[r].text, strlen(sregs[r].text), name, len))
            return (enum ptx_sreg)r;
    }
    return PTX_SR_COUNT;
}

enum ptx_mod ptx_mod_find(const char *text, size_t len, enum ptx_mod_class cls)
{
    need_table();
    return mod_in_class(word_place(text, len), cls);
}

enum ptx_mod ptx_type_find(const char *text, size_t len)
{
    return ptx_mod_find(text, len, PTX_MC_TYPE);
}

const struct ptx_row *ptx_rows_of(const char *name, size_t len, size_t *n)
{
    need_table();
    unsigned h = name_place(name, len);
    *n = table.name[h].n;
    return *n ? &table.row[table.name[h].first] : NULL;
}

const char *const *ptx_names(void)
{
    need_table();
    return table.names;
}

const char *ptx_word_text(unsigned word)
{
    return table.word[word].text;
}

/* ---- matching -------------------------------------------------------------------------------- */

size_t ptx_split(const char *mnemonic, size_t len, struct ptx_word words[PTX_MAX_WORDS])
{
    size_t n = 0;
    const char *p = mnemonic, *end = mnemonic + len;
    while (true) {
        const char *dot = memchr(p, '.', (size_t)(end - p));
        const char *stop = dot ? dot : end;
        if (n == PTX_MAX_WORDS)
            return 0;
        words[n++] = (struct ptx_word){p, (size_t)(stop - p)};
        if (!dot)
            return n;
        p = dot + 1;
    }
}

static const struct ptx_alt *slot_find(const struct ptx_slot *s, unsigned word)
{
    for (unsigned i = 0; i < s->nalt; i++)
        if (s->alt[i].word == word)
            return &s->alt[i];
    return NULL;
}

/* Does the slot say how a result is rounded and limited? */
static bool is_finish(const struct ptx_slot *s)
{
    const unsigned m = s->alt[0].mod;
    return m == PTX_RN || m == PTX_FTZ || m == PTX_SAT || m == PTX_RELU;
}

/* Optional slots are taken when the next word fits them; no row needs more than that. bare: what
 * finishes a result may be left out. */
static bool row_fits(const struct ptx_row *r, const uint16_t *id, size_t n, bool bare,
                     struct ptx_spelling *found)
{
    struct ptx_words *const words = &found->words;
    size_t w = 0, ntype = 0;
    *words = (struct ptx_words){0};
    for (unsigned i = 0; i < r->nslot; i++) {
        const struct ptx_slot *s = &r->slot[i];
        const struct ptx_alt *a = w < n ? slot_find(s, id[w]) : NULL;
        if (!a) {
            if (s->optional || (bare && is_finish(s)))
                continue;
            return false;
        }
        w++;
        if (s->cls == PTX_MC_COUNT)
            continue;
        if (s->cls == PTX_MC_TYPE)
            words->type[ntype++] = a->mod;
        else
            words->mod[s->cls] = a->mod;
    }
    words->mod[PTX_MC_TYPE] = words->type[0];
    found->op = (enum ptx_op)(r - table.row);
    return w == n;
}

/* The same words in another order, which ptxas takes too (Triton writes
 * atom.global.gpu.acq_rel.add). */
static bool row_fits_shuffled(const struct ptx_row *r, const uint16_t *id, size_t n,
                              struct ptx_spelling *found)
{
    const struct ptx_alt *filled[PTX_MAX_WORDS] = {NULL};
    uint16_t sorted[PTX_MAX_WORDS];
    size_t count = 0;
    for (size_t w = 0; w < n; w++) {
        unsigned i = 0;
        while (i < r->nslot && (filled[i] || !(filled[i] = slot_find(&r->slot[i], id[w]))))
            i++;
        if (i == r->nslot)
            return false;
    }
    for (unsigned i = 0; i < r->nslot; i++)
        if (filled[i])
            sorted[count++] = filled[i]->word;
    return row_fits(r, sorted, count, false, found);
}

/* The numbers of the words behind the name; false when one of them is in no row. */
static bool number_words(const struct ptx_word *words, size_t n, uint16_t id[PTX_MAX_WORDS])
{
    for (size_t i = 1; i < n; i++) {
        unsigned w = word_place(words[i].text, words[i].len);
        if (!table.word[w].text)
            return false;
        id[i - 1] = (uint16_t)w;
    }
    return true;
}

size_t ptx_spelled(const char *spelling, size_t len, size_t most, struct ptx_spelling *found)
{
    struct ptx_word words[PTX_MAX_WORDS];
    uint16_t id[PTX_MAX_WORDS];
    const size_t n = ptx_split(spelling, len, words);
    size_t nrow = 0, nfound = 0;
    const struct ptx_row *row = n ? ptx_rows_of(words[0].text, words[0].len, &nrow) : NULL;
    if (!row || !number_words(words, n, id))
        return 0;
    for (size_t k = 0; k < nrow; k++) {
        struct ptx_spelling t;
        if (!row_fits(&row[k], id, n - 1, true, &t))
            continue;
        if (nfound < most)
            found[nfound] = t;
        nfound++;
    }
    return nfound;
}

bool ptx_match(const struct ptx_word *words, size_t n, size_t noperand, struct ptx_spelling *found)
{
    uint16_t id[PTX_MAX_WORDS];
    size_t nrow;
    const struct ptx_row *row = ptx_rows_of(words[0].text, words[0].len, &nrow);
    if (!row || !number_words(words, n, id))
        return false;
    bool any = false, count = false;
    for (size_t k = 0; k < 2 * nrow && !count; k++) {
        bool shuffled = k >= nrow;
        struct ptx_spelling t;
        size_t least, most;
        if (shuffled && any)
            break;
        if (!shuffled ? !row_fits(&row[k], id, n - 1, false, &t)
                      : !row_fits_shuffled(&row[k - nrow], id, n - 1, &t))
            continue;
        const struct ptx_inst in = ptx_as_spelled(&t);
        ptx_operand_range(&in, &least, &most);
        count = noperand == PTX_ANY_COUNT || (noperand >= least && noperand <= most);
        if (count || !any)
            *found = t;
        any = true;
    }
    return any;
}

bool ptx_spec_applies(const struct ptx_inst *in, const struct ptx_spec *spec)
{
    switch (spec->kind) {
    case 'h': return in->mod[PTX_MC_HINT] != PTX_NONE;
    case 'k': return in->mod[PTX_MC_MODE2] == PTX_MULTICAST;
    case 'y': return in->mod[PTX_MC_BOOLOP] != PTX_NONE;
    default: return true;
    }
}

void ptx_operand_range(const struct ptx_inst *in, size_t *least, size_t *most)
{
    const struct ptx_row *r = ptx_row(in->op);
    *least = *most = 0;
    for (unsigned i = 0; i < r->nspec; i++) {
        if (!ptx_spec_applies(in, &r->spec[i]))
            continue;
        ++*most;
        if (!r->spec[i].optional)
            ++*least;
    }
}

bool ptx_operand_specs(const struct ptx_inst *in, const struct ptx_spec *specs[PTX_MAX_OPERANDS])
{
    const struct ptx_row *r = ptx_row(in->op);
    size_t least, most, n = 0;
    for (unsigned i = 0; r->is_plain && i < r->nspec; i++)
        specs[i] = &r->spec[i];
    if (r->is_plain)
        return in->noperand == r->nspec;
    ptx_operand_range(in, &least, &most);
    if (in->noperand < least || in->noperand > most)
        return false;
    size_t extra = in->noperand - least;
    for (unsigned i = 0; i < r->nspec; i++) {
        const struct ptx_spec *s = &r->spec[i];
        if (!ptx_spec_applies(in, s))
            continue;
        if (s->optional && extra == 0)
            continue;
        if (s->optional)
            extra--;
        specs[n++] = s;
    }
    return true;
}

size_t ptx_mnemonic_words(const struct ptx_inst *in, const char *words[PTX_MAX_WORDS])
{
    const struct ptx_row *r = ptx_row(in->op);
    size_t n = 0, ntype = 0;
    for (unsigned i = 0; i < r->nslot; i++) {
        const struct ptx_slot *s = &r->slot[i];
        if (s->cls == PTX_MC_COUNT)
            words[n++] = table.word[s->alt[0].word].text;
        else if (s->cls == PTX_MC_TYPE)
            words[n++] = mods[in->type[ntype++]].text;
        else if (in->mod[s->cls] != PTX_NONE)
            words[n++] = mods[in->mod[s->cls]].text;
    }
    return n;
}
