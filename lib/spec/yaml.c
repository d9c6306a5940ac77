#include <config.h>

#include "spec/yaml.h"

#include <yaml.h>

/* ---- text ------------------------------------------------------------------------------------ */

/* The bytes of the UTF-8 sequence at p (at most n), 0 when it is not one. */
static size_t utf8_length(const unsigned char *p, size_t n, uint32_t *code)
{
    static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    size_t len = p[0] < 0x80             ? 1
                 : (p[0] & 0xe0) == 0xc0 ? 2
                 : (p[0] & 0xf0) == 0xe0 ? 3
                 : (p[0] & 0xf8) == 0xf0 ? 4
                                         : 0;
    if (len == 0 || len > n)
        return 0;
    *code = len == 1 ? p[0] : p[0] & (0x7fu >> len);
    for (size_t i = 1; i < len; i++) {
        if ((p[i] & 0xc0) != 0x80)
            return 0;
        *code = *code << 6 | (p[i] & 0x3fu);
    }
    return *code < least[len] || *code > 0x10ffff || (*code >= 0xd800 && *code < 0xe000) ? 0 : len;
}

static bool is_printable(uint32_t c)
{
    return c == '\t' || c == '\n' || c == '\r' || (c >= 0x20 && c < 0x7f) || c == 0x85 ||
           (c >= 0xa0 && c < 0xfffe && c != 0xfeff) || c >= 0x10000;
}

static bool check_text(const struct source *src, struct diags *d)
{
    const unsigned char *p = (const unsigned char *)src->text;
    size_t n = src->len;
    if (n > YAML_MAX_BYTES)
        return diag_error(d, (struct span){src, 0, 0},
                          "the input has %zu bytes; at most %d are read", n, YAML_MAX_BYTES);
    if (n >= 2 && ((p[0] == 0xff && p[1] == 0xfe) || (p[0] == 0xfe && p[1] == 0xff)))
        return diag_error(d, (struct span){src, 0, 0}, "the input is UTF-16; save it as UTF-8");
    for (size_t i = 0; i < n;) {
        uint32_t c = p[i];
        size_t len = c >= 0x20 && c < 0x7f ? 1 : utf8_length(p + i, n - i, &c);
        struct span at = {src, i, 1};
        if (len == 0)
            return diag_error(d, at, "byte 0x%02x is not UTF-8", p[i]);
        if (c == 0)
            return diag_error(d, at, "a NUL byte: is this a text file?");
        if (!is_printable(c) && !(c == 0xfeff && i == 0))
            return diag_error(d, at, "control character U+%04X; remove it", (unsigned)c);
        i += len;
    }
    return true;
}

/* ---- reading --------------------------------------------------------------------------------- */

struct anchor {
    const char *name;
    struct yaml_value *value; /* NULL while the node is still open */
};

struct reader {
    struct arena *a;
    struct diags *d;
    const struct source *src;
    yaml_parser_t parser;
    size_t mark, byte; /* libyaml counts characters: the byte offset of one of them */
    VEC(struct anchor) anchors;
    size_t nodes;
    unsigned depth;
};

static bool continues(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

static size_t byte_of(struct reader *r, size_t mark)
{
    const char *text = r->src->text;
    while (r->mark > mark && r->byte > 0) {
        do
            r->byte--;
        while (r->byte > 0 && continues(text[r->byte]));
        r->mark--;
    }
    while (r->mark < mark && r->byte < r->src->len) {
        do
            r->byte++;
        while (r->byte < r->src->len && continues(text[r->byte]));
        r->mark++;
    }
    return r->byte;
}

static struct span span_of(struct reader *r, yaml_mark_t start, yaml_mark_t end)
{
    size_t from = byte_of(r, start.index), to = byte_of(r, end.index);
    return (struct span){r->src, from, to > from ? to - from : 0};
}

/* What libyaml says, for people who do not know its source. */
static const char *plainly(const char *problem)
{
    static const struct {
        const char *has, *say;
    } table[] = {
        {"found character that cannot start any token",
         "this character can't start a value; put the value "
         "in quotes, and indent with blanks, not tabs"},
        {"found a tab character", "indent with blanks, not tabs"},
        {"mapping values are not allowed in this context",
         "a ':' is not possible here; check the indentation, "
         "or write the value in quotes or as a block ('|')"},
        {"could not find expected ':'", "a ':' is missing after this key"},
        {"did not find expected key", "expected a key here; check the indentation"},
        {"did not find expected ',' or '}'",
         "expected ',' or '}'; a value with brackets inside { } must be "
         "in quotes, or on a line of its own without the braces"},
        {"did not find expected ',' or ']'",
         "expected ',' or ']'; a value with brackets inside [ ] must be "
         "in quotes"},
        {"did not find expected '-' indicator", "expected '-' here; check the indentation"},
        {"found unexpected end of stream", "the text ends in the middle of a value"},
        {"did not find expected <document start>",
         "expected the end of the document or '---'; check the "
         "indentation"},
        {"found unknown escape character", "no such escape in a quoted value; use single quotes"},
    };
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (strstr(problem, table[i].has))
            return table[i].say;
    return problem;
}

static bool parser_failed(struct reader *r)
{
    const yaml_parser_t *p = &r->parser;
    struct span at = {r->src, r->src->len, 0};
    if (p->error == YAML_MEMORY_ERROR)
        return diag_error(r->d, SPAN_NONE, "out of memory");
    at.off = byte_of(r, p->problem_mark.index);
    at.len = at.off < r->src->len;
    if (at.len && r->src->text[at.off] == '\t')
        return diag_error(r->d, at, "indent with blanks, not tabs");
    diag_error(r->d, at, "%s", plainly(p->problem ? p->problem : "this is not YAML"));
    if (p->context && p->context_mark.index != p->problem_mark.index) {
        size_t off = byte_of(r, p->context_mark.index);
        diag_note(r->d, (struct span){r->src, off, 1}, "%s that starts here", p->context);
    }
    return false;
}

static bool next_event(struct reader *r, yaml_event_t *e)
{
    return yaml_parser_parse(&r->parser, e) ? true : parser_failed(r);
}

static struct yaml_value *read_node(struct reader *r, yaml_event_t *e);

static struct yaml_value *new_value(struct reader *r, enum yaml_kind kind, struct span s)
{
    struct yaml_value *v = ARENA_NEW(r->a, struct yaml_value);
    v->kind = kind;
    v->span = s;
    v->weight = 1;
    if (++r->nodes > YAML_MAX_NODES) {
        diag_error(r->d, s, "more than %d values", YAML_MAX_NODES);
        return NULL;
    }
    return v;
}

static bool add_weight(struct reader *r, struct yaml_value *v, const struct yaml_value *child)
{
    v->weight += child->weight;
    return v->weight <= YAML_MAX_NODES ||
           diag_error(r->d, child->span, "the aliases expand to more than %d values",
                      YAML_MAX_NODES);
}

/* Anchors and tags stand in front of a node and belong to its span; the value starts after them. */
static void skip_properties(const struct source *src, struct span *s)
{
    size_t end = s->off + s->len;
    for (;;) {
        while (s->off < end && strchr(" \t\r\n", src->text[s->off]))
            s->off++;
        if (s->off < end && src->text[s->off] == '#') {
            while (s->off < end && src->text[s->off] != '\n')
                s->off++;
            continue;
        }
        if (s->off >= end || (src->text[s->off] != '&' && src->text[s->off] != '!'))
            break;
        while (s->off < end && !strchr(" \t\r\n", src->text[s->off]))
            s->off++;
    }
    s->len = end - s->off;
}

static struct yaml_value *read_scalar(struct reader *r, const yaml_event_t *e, struct span s)
{
    struct yaml_value *v = new_value(r, YAML_SCALAR, s);
    const char *src = r->src->text;
    if (!v)
        return NULL;
    if (e->data.scalar.anchor)
        skip_properties(r->src, &v->span);
    v->raw = v->span;
    v->text = arena_strndup(r->a, (const char *)e->data.scalar.value, e->data.scalar.length);
    v->len = strlen(v->text); /* "\0" ends it: nothing here may hold a NUL */
    v->is_raw = true;
    switch (e->data.scalar.style) {
    case YAML_LITERAL_SCALAR_STYLE:
    case YAML_FOLDED_SCALAR_STYLE:
        v->style = e->data.scalar.style == YAML_LITERAL_SCALAR_STYLE ? YAML_LITERAL : YAML_FOLDED;
        while (v->raw.len && src[v->raw.off] != '\n' && src[v->raw.off] != '\r')
            v->raw.off++, v->raw.len--;
        break;
    case YAML_SINGLE_QUOTED_SCALAR_STYLE:
    case YAML_DOUBLE_QUOTED_SCALAR_STYLE:
        v->style = YAML_QUOTED;
        if (v->raw.len >= 2)
            v->raw.off++, v->raw.len -= 2;
        v->is_raw = !memchr(src + v->raw.off, '\\', v->raw.len) &&
                    !memmem(src + v->raw.off, v->raw.len, "''", 2);
        break;
    default: v->style = YAML_PLAIN;
    }
    return v;
}

static struct yaml_value *read_list(struct reader *r, struct yaml_value *v)
{
    VEC(struct yaml_value *) items = {0};
    for (;;) {
        yaml_event_t e;
        if (!next_event(r, &e))
            return NULL;
        bool end = e.type == YAML_SEQUENCE_END_EVENT;
        if (end)
            v->all = span_join(v->span, span_of(r, e.start_mark, e.end_mark));
        struct yaml_value *item = end ? NULL : read_node(r, &e);
        yaml_event_delete(&e);
        if (end)
            break;
        if (!item || !add_weight(r, v, item))
            return NULL;
        *VEC_PUSH(r->a, &items) = item;
    }
    v->item = items.v;
    v->n = items.n;
    return v;
}

static uint32_t hash_of(const char *s)
{
    uint32_t h = 2166136261u;
    for (; *s; s++)
        h = (h ^ (unsigned char)*s) * 16777619u;
    return h ^ h >> 15;
}

/* Duplicate keys, found with a hash table because a map may have as many keys as the input can
 * hold. */
static bool check_keys(struct reader *r, const struct yaml_value *map)
{
    size_t size = 16;
    while (size < map->n * 2)
        size *= 2;
    const struct yaml_value **table = ARENA_ARRAY(r->a, size, const struct yaml_value *);
    for (size_t i = 0; i < map->n; i++) {
        const struct yaml_value *key = map->pair[i].key;
        if (key->kind != YAML_SCALAR)
            return diag_error(r->d, key->span, "a key is a single word here, not a %s",
                              key->kind == YAML_MAP ? "map" : "list");
        size_t at = hash_of(key->text) & (size - 1);
        for (; table[at]; at = (at + 1) & (size - 1))
            if (strcmp(table[at]->text, key->text) == 0) {
                diag_error(r->d, key->span, "the key '%s' is there twice", key->text);
                diag_note(r->d, table[at]->span, "it is given here already");
                return false;
            }
        table[at] = key;
    }
    return true;
}

static struct yaml_value *read_map(struct reader *r, struct yaml_value *v)
{
    VEC(struct yaml_pair) pairs = {0};
    for (;;) {
        yaml_event_t e;
        if (!next_event(r, &e))
            return NULL;
        bool end = e.type == YAML_MAPPING_END_EVENT;
        struct yaml_value *key = end ? NULL : read_node(r, &e);
        yaml_event_delete(&e);
        if (end)
            break;
        if (!key || !next_event(r, &e))
            return NULL;
        struct yaml_value *value = read_node(r, &e);
        yaml_event_delete(&e);
        if (!value || !add_weight(r, v, key) || !add_weight(r, v, value))
            return NULL;
        *VEC_PUSH(r->a, &pairs) = (struct yaml_pair){key, value};
    }
    v->pair = pairs.v;
    v->n = pairs.n;
    return check_keys(r, v) ? v : NULL;
}

static struct yaml_value *read_alias(struct reader *r, const yaml_event_t *e)
{
    const char *name = (const char *)e->data.alias.anchor;
    struct span s = span_of(r, e->start_mark, e->end_mark);
    for (size_t i = r->anchors.n; i-- > 0;) {
        if (strcmp(r->anchors.v[i].name, name) != 0)
            continue;
        if (!r->anchors.v[i].value)
            diag_error(r->d, s, "the alias '*%s' is inside of what it stands for", name);
        return r->anchors.v[i].value;
    }
    diag_error(r->d, s, "no anchor '&%s' comes before this alias", name);
    return NULL;
}

static const yaml_char_t *anchor_of(const yaml_event_t *e)
{
    switch (e->type) {
    case YAML_SCALAR_EVENT: return e->data.scalar.anchor;
    case YAML_SEQUENCE_START_EVENT: return e->data.sequence_start.anchor;
    case YAML_MAPPING_START_EVENT: return e->data.mapping_start.anchor;
    default: return NULL;
    }
}

static const yaml_char_t *tag_of(const yaml_event_t *e)
{
    switch (e->type) {
    case YAML_SCALAR_EVENT: return e->data.scalar.tag;
    case YAML_SEQUENCE_START_EVENT: return e->data.sequence_start.tag;
    case YAML_MAPPING_START_EVENT: return e->data.mapping_start.tag;
    default: return NULL;
    }
}

/* A flow collection's start is its bracket; a block one's first key or dash, as libyaml has it. */
static struct yaml_value *read_collection(struct reader *r, const yaml_event_t *e, struct span s)
{
    bool list = e->type == YAML_SEQUENCE_START_EVENT;
    if (s.len == 0)
        s.len = s.off < r->src->len;
    if (anchor_of(e))
        skip_properties(r->src, &s);
    struct yaml_value *v = new_value(r, list ? YAML_LIST : YAML_MAP, s);
    if (!v)
        return NULL;
    v->is_flow = list && e->data.sequence_start.style == YAML_FLOW_SEQUENCE_STYLE;
    if (r->depth >= YAML_MAX_DEPTH) {
        diag_error(r->d, s, "nested more than %d levels deep", YAML_MAX_DEPTH);
        return NULL;
    }
    r->depth++;
    v = list ? read_list(r, v) : read_map(r, v);
    r->depth--;
    return v;
}

static struct yaml_value *read_node(struct reader *r, yaml_event_t *e)
{
    enum { MAX_ANCHORS = 256 };
    const yaml_char_t *anchor = anchor_of(e);
    size_t at = r->anchors.n;
    if (e->type == YAML_ALIAS_EVENT)
        return read_alias(r, e);
    struct span s = span_of(r, e->start_mark, e->end_mark);
    if (tag_of(e)) {
        diag_error(r->d, s, "tags ('!...') are not used here; remove it");
        return NULL;
    }
    if (anchor) {
        if (at == MAX_ANCHORS) {
            diag_error(r->d, s, "more than %d anchors", MAX_ANCHORS);
            return NULL;
        }
        VEC_PUSH(r->a, &r->anchors)->name = arena_strdup(r->a, (const char *)anchor);
    }
    struct yaml_value *v = e->type == YAML_SCALAR_EVENT ? read_scalar(r, e, s)
                                                        : read_collection(r, e, s);
    if (anchor)
        r->anchors.v[at].value = v;
    return v;
}

static bool read_document(struct reader *r, struct yaml_stream *out)
{
    yaml_event_t e;
    r->anchors.n = 0;
    if (!next_event(r, &e))
        return false;
    struct yaml_value *root = read_node(r, &e);
    yaml_event_delete(&e);
    if (!root || !next_event(r, &e))
        return false;
    yaml_event_delete(&e); /* the document's end */
    bool empty = root->kind == YAML_SCALAR && root->style == YAML_PLAIN && root->len == 0;
    *VEC_PUSH(r->a, &out->docs) = empty ? NULL : root;
    return true;
}

static bool read_stream(struct reader *r, struct yaml_stream *out)
{
    for (;;) {
        yaml_event_t e;
        if (!next_event(r, &e))
            return false;
        yaml_event_type_t type = e.type;
        yaml_event_delete(&e);
        if (type == YAML_STREAM_END_EVENT)
            return true;
        if (type == YAML_DOCUMENT_START_EVENT && !read_document(r, out))
            return false;
    }
}

struct yaml_stream *yaml_read(struct arena *a, const struct source *src, struct diags *d)
{
    struct reader r = {.a = a, .d = d, .src = src};
    struct yaml_stream *out = ARENA_NEW(a, struct yaml_stream);
    if (!check_text(src, d))
        return NULL;
    if (!yaml_parser_initialize(&r.parser)) {
        diag_error(d, SPAN_NONE, "out of memory");
        return NULL;
    }
    /* libyaml would take a byte order mark for the first column when it is told the encoding, and
     * not count it when it is not: it never sees it */
    r.byte = src->len >= 3 && memcmp(src->text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
    yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&r.parser, (const unsigned char *)src->text + r.byte,
                                 src->len - r.byte);
    bool good = read_stream(&r, out);
    yaml_parser_delete(&r.parser);
    return good ? out : NULL;
}

struct yaml_value *yaml_get(const struct yaml_value *map, const char *key)
{
    for (size_t i = 0; map->kind == YAML_MAP && i < map->n; i++)
        if (strcmp(map->pair[i].key->text, key) == 0)
            return map->pair[i].value;
    return NULL;
}
