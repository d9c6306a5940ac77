/* Private to lib/lang: tokens, the parser's and the checker's state. */
#ifndef KAIO_LANG_LANG_INT_H
#define KAIO_LANG_LANG_INT_H

#include "lang/lang.h"

/* ---- tokens ---------------------------------------------------------------------------------- */

#define LANG_PUNCTUATION(X) \
    X(SHL_ASSIGN, "<<=")    \
    X(SHR_ASSIGN, ">>=")    \
    X(SHL, "<<")            \
    X(SHR, ">>")            \
    X(LE, "<=")             \
    X(GE, ">=")             \
    X(EQ, "==")             \
    X(NE, "!=")             \
    X(LAND, "&&")           \
    X(LOR, "||")            \
    X(INC, "++")            \
    X(DEC, "--")            \
    X(ADD_ASSIGN, "+=")     \
    X(SUB_ASSIGN, "-=")     \
    X(MUL_ASSIGN, "*=")     \
    X(DIV_ASSIGN, "/=")     \
    X(MOD_ASSIGN, "%=")     \
    X(AND_ASSIGN, "&=")     \
    X(XOR_ASSIGN, "^=")     \
    X(OR_ASSIGN, "|=")      \
    X(ARROW, "->")          \
    X(DOTDOT, "..")         \
    X(ADD, "+")             \
    X(SUB, "-")             \
    X(MUL, "*")             \
    X(DIV, "/")             \
    X(MOD, "%")             \
    X(LT, "<")              \
    X(GT, ">")              \
    X(ASSIGN, "=")          \
    X(NOT, "!")             \
    X(BITNOT, "~")          \
    X(AND, "&")             \
    X(XOR, "^")             \
    X(OR, "|")              \
    X(QUESTION, "?")        \
    X(COLON, ":")           \
    X(SEMICOLON, ";")       \
    X(COMMA, ",")           \
    X(DOT, ".")             \
    X(LPAREN, "(")          \
    X(RPAREN, ")")          \
    X(LBRACKET, "[")        \
    X(RBRACKET, "]")        \
    X(LBRACE, "{")          \
    X(RBRACE, "}")          \
    X(HASH, "#")

enum tok_kind {
    T_EOF,
    T_NAME,
    T_INT,
    T_FLOAT,
    T_STRING, /* quotes included */
    T_BAD,    /* reported already */
#define X(NAME, text) T_##NAME,
    LANG_PUNCTUATION(X)
#undef X
};

struct token {
    enum tok_kind kind;
    bool newline; /* first of its line */
    struct span span;
    uint64_t ival;
    double fval;
    enum dtype type; /* a literal's suffix, or the type that a T_NAME names; DT_VOID: none */
    uint8_t lanes;   /* of a vector type (f32x4: 4, and type is its lanes'); else 0 */
};

struct lexer {
    struct diags *d;
    const struct source *src;
    size_t pos, end;
    bool hash_comments; /* compute: and reference: */
    const struct lang_types *types;
};

void lex_next(struct lexer *l, struct token *t);
bool tok_is(const struct token *t, const char *word); /* the name `word` */
/* "'foo'", "'+='", "the end of the text": for messages. */
const char *tok_text(struct arena *a, const struct token *t);

#define LANG_NO_VOLATILE                                                                    \
    "there is no volatile; where threads race for a value, read it by load(&x[i], order = " \
    "relaxed) and write it by store()"

/* ---- parsing --------------------------------------------------------------------------------- */

struct parser {
    struct arena *a;
    struct diags *d;
    struct lexer lex;
    struct token tok, ahead; /* ahead: the one after tok, when has_ahead */
    bool has_ahead;
    struct span prev; /* the token before tok */
    unsigned depth;
};

enum {
    LANG_MAX_TEXT = 256 << 10,
    LANG_MAX_EQUATIONS = 500,
    LANG_MAX_RANK = 8,
    LANG_MAX_ARRAY_RANK = 4,
    LANG_MAX_LISTED = 1 << 18, /* elements of a body's arrays with lists */
    LANG_MAX_LOCAL_BYTES = 512 << 10,
    LANG_MAX_LOCALS = 4096,
    LANG_MAX_CALLS = 32,
    LANG_MAX_INLINED = 10000
};

/* False when the text is too long to be a program. */
bool parser_init(struct parser *p, struct arena *a, struct span text, bool hash_comments,
                 const struct lang_types *types, struct diags *d);
void parser_next(struct parser *p);
/* The token after the current one. */
const struct token *parser_ahead(struct parser *p);
/* At a name in front of '[', which is ahead: is there a '(' behind the brackets? */
bool parser_at_notation(const struct parser *p);
bool parser_accept(struct parser *p, enum tok_kind k);
/* what: "after the condition" and the like, may be "". */
bool parser_expect(struct parser *p, enum tok_kind k, const char *what);
/* An error at the current token, unless the lexer has already reported it. */
bool parser_error(struct parser *p, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
bool parser_enter(struct parser *p); /* one level deeper; an error past LANG_MAX_NESTING */
void parser_leave(struct parser *p);
const char *parser_name(struct parser *p); /* the current T_NAME's text, in the arena */
/* "f32", "unsigned": is the current token a type's name? */
bool parser_at_type(const struct parser *p, enum dtype *t);

struct lang_expr *parse_expr(struct parser *p);   /* a whole expression; NULL after an error */
struct lang_expr *parse_string(struct parser *p); /* at a T_STRING */
struct lang_expr *parse_range(struct parser *p);  /* one that stops before < and .. */
/* After a name inside brackets: "< e" or "in e .. e" into the index symbol, or nothing. */
bool parse_index_range(struct parser *p, struct lang_symbol *index);
struct lang_symbol *parse_index(struct parser *p);
struct lang_stmt *parse_stmt_block(struct parser *p); /* at '{' */
/* At '[' behind a declared name: the extents, into sym. */
bool parse_array_extents(struct parser *p, struct lang_symbol *sym);
typedef VEC(struct lang_stmt *) stmt_list;
struct lang_stmt *parse_new_stmt(struct parser *p, enum lang_stmt_kind k, struct span s);
/* "f32 x", "const", "auto", "shared": does a declaration begin here? */
bool parse_at_declaration(struct parser *p);
/* "const u32 a = 1, b = 2", "shared f32 tile[32][33]", without the ';'. The list of an array's
 * values is s->rhs until the checker flattens it into s->list. */
bool parse_declaration(struct parser *p, stmt_list *out);
struct lang_expr *expr_new(struct arena *a, enum lang_expr_kind k, struct span s);
bool expr_finish(struct parser *p, struct lang_expr *e); /* sets height and span's end */
enum dtype literal_int_type(uint64_t v);

/* The lanes of a vector type's name ("f32x4": 4, and *t is f32), or 0. */
uint8_t lang_vector_parse(const char *s, size_t n, const struct lang_types *types, enum dtype *t);
bool lang_reduce_parse(const char *s, size_t n, enum lang_reduce *r);
/* What a reduction or a notation is called that is nearly called so; NULL: none is. */
const char *lang_nearest_reduction(const char *name);
bool lang_special_parse(const char *s, size_t n, enum lang_special *sp);
bool lang_order_parse(const char *s, size_t n, enum lang_order *o);
bool lang_memory_scope_parse(const char *s, size_t n, enum lang_memory_scope *scope);
/* The builtin of that name; FN_COUNT: there is none. *fast: the name begins with fast_. */
enum lang_builtin lang_builtin_parse(const char *name, bool *fast);
/* What a function of CUDA is called here ("atomicAdd": "atomic_add"); NULL for other names. */
const char *lang_cuda_word(const char *name);

/* ---- checking -------------------------------------------------------------------------------- */

enum lang_place { IN_LAUNCH, IN_COMPUTE, IN_BODY };

/* Checked equations, each behind those that it reads. */
typedef VEC(struct lang_equation *) checked_list;

struct checker {
    struct arena *a;
    struct diags *d;
    struct lang_scope *scope;
    /* The checked equations, to which those that a notation stands for are added. NULL: no notation
     * may have equations of its own here. */
    checked_list *made;
    /* The types of a recurrence are being looked for: an integer may yet become a float. */
    bool guessing;
    struct lang_options opt;
    enum lang_place place;
    unsigned guarded;       /* inside a conditional's arm or pad(): a read may be out of range */
    unsigned ifs;           /* of those, branches of if */
    struct lang_func *func; /* whose body is checked; NULL in the kernel */
    uint32_t weight, depth; /* inlined calls so far, and how deep they go */
    uint32_t calls;         /* functions being checked around this one */
    unsigned loops, switches;
    unsigned unreached; /* inside a branch whose condition is a constant that excludes it */
    uint32_t nlocal;
    uint64_t listed; /* elements of arrays with lists */
    bool syncs;      /* calls what threads must come to together */
};

struct lang_func_private {
    struct arena *a;
    struct lang_scope *scope;
    struct lang_options opt;
    struct span text; /* lazy: the body, not yet parsed */
    bool checking, failed, syncs;
};

bool check_expr(struct checker *c, struct lang_expr *e);
/* Makes e of type `to` as an initialisation or a store does; an error says how to write the
 * conversion. what: what it is converted for ("'y'", "the argument"). */
bool check_coerce(struct checker *c, struct lang_expr *e, enum dtype to, const char *what);
/* The usual conversion of an operand: never an error. */
void check_convert(struct checker *c, struct lang_expr *e, enum dtype to);
/* rounded.c: marks the calls in e, which is converted to `to`, whose results are rounded to 16 bits
 * or fewer at once; and those in intermediates that are read so, once all equations are checked. */
void check_rounded(const struct checker *c, struct lang_expr *e, enum dtype to);
void check_rounded_equations(const struct checker *c, const struct lang_equations *all);
bool check_condition(struct checker *c, struct lang_expr *e); /* checks, and makes it a bool */
bool check_integer(struct checker *c, struct lang_expr *e, const char *what);
bool check_divisor(struct checker *c, const struct lang_expr *by); /* is it no constant 0? */
bool check_call(struct checker *c, struct lang_expr *e);
bool check_notation(struct checker *c, struct lang_expr *e); /* a call with indices */
/* Are the indices of a reduction or a notation its own? softmax's are indices around it. */
bool lang_binds(const struct lang_expr *e);
/* The indices that a reduction or a notation binds, with their ranges, into `inner`. */
bool check_own_indices(struct checker *c, const struct lang_expr *e, struct lang_scope *inner);
bool check_sync(struct checker *c, struct lang_expr *e);   /* a call of kind SYNC */
bool check_atomic(struct checker *c, struct lang_expr *e); /* of kind ATOMIC */
/* Warns where a loop that does nothing but wait reads what it waits for by a plain read. */
void warn_waiting(struct checker *c, const struct lang_stmt *loop);
/* Whether what is at the address may be written, or why not. */
bool check_written(struct checker *c, const struct lang_expr *address);
/* print() and assert(): their arguments are not checked yet. */
bool check_print(struct checker *c, struct lang_expr *e);
bool check_assert(struct checker *c, struct lang_expr *e);
bool check_subscripts(struct checker *c, struct lang_expr *e);
/* The index's range is checked and its extent, if not written, found in `within`. */
bool check_index_range(struct checker *c, struct lang_symbol *index,
                       const struct lang_expr *within);
/* The extent of what an index of that name subscripts by itself; NULL: nothing. */
struct lang_expr *index_extent(const struct checker *c, const char *name,
                               const struct lang_expr *within);
/* Will check_index_range() succeed? */
bool index_has_range(const struct checker *c, const struct lang_symbol *index,
                     const struct lang_expr *within);
/* Checks the end of a written range. */
bool check_bound(struct checker *c, struct lang_expr *e);
/* Is the range the extent, or surely less (n in n + 1)? */
bool range_is_within(const struct lang_expr *range, const struct lang_expr *extent);
/* What in e the launch does not know: all but constants, dimensions, integer parameters and
 * blockDim; NULL: it knows all. */
const struct lang_expr *lang_unknown_at_launch(const struct lang_expr *e);
/* check_coerce to a vector of `lanes`, or a scalar where that is 0. */
bool check_coerce_as(struct checker *c, struct lang_expr *e, enum dtype to, uint8_t lanes,
                     const char *what);
/* Whether e's type may become `to` without being written. */
bool check_allowed(const struct checker *c, const struct lang_expr *e, enum dtype to);
bool check_scalar(struct checker *c, const struct lang_expr *e, const char *what);
/* The lanes of the vectors among e's checked arguments, 0 without one; an error when they
 * differ. */
bool check_lanes(struct checker *c, const struct lang_expr *e, uint8_t *lanes);
/* A checked scalar becomes a vector of as many lanes. */
void check_broadcast(struct checker *c, struct lang_expr *e, uint8_t lanes);
/* Constants and tables in front of functions. */
bool check_tables(struct arena *a, struct lang_stmt *block, struct lang_scope *scope,
                  const struct lang_options *opt, struct diags *d);
bool check_extents(struct checker *c, struct lang_symbol *sym);
bool check_array_decl(struct checker *c, struct lang_stmt *s);
bool check_lane(struct checker *c, struct lang_expr *arg, const char *name, uint8_t lanes);
bool check_member(struct checker *c, struct lang_expr *e);
bool check_vector(struct checker *c, struct lang_expr *e);
/* An argument of `taker` that must be &x[i] or &count: gets the element's type and lanes. */
bool check_address(struct checker *c, struct lang_expr *e, const char *taker);
bool check_unknown(struct checker *c, struct span s, const char *name, bool function);
bool check_func(struct lang_func *f, uint32_t calls, struct diags *d);
/* Puts what a function returns in place of a checked call in an equation; leaves a call of one with
 * loops, arrays or vectors. */
void inline_call(struct arena *a, struct lang_expr *e);
/* A copy of a checked expression of an equation, in which to[i] is in the place of the index
 * from[i]; NULL: it is too long. */
struct lang_expr *expr_renamed(struct arena *a, const struct lang_expr *e, uint32_t n,
                               struct lang_symbol *const *from, struct lang_symbol *const *to);
/* Where the statements read a buffer that the kernel writes; NULL: nowhere. */
const struct lang_expr *reads_written(const struct lang_stmt *s);

enum dtype type_promote(enum dtype t);
enum dtype type_common(enum dtype x, enum dtype y);
/* Every value of `from` is one of `to`. */
bool type_contains(enum dtype to, enum dtype from);
void expr_cast(struct arena *a, struct lang_expr *e, enum dtype to); /* an implicit cast around e */
bool expr_adapts(const struct lang_expr *e); /* made of literals without suffix only, and a float */
void expr_retype(struct lang_expr *e, enum dtype to);
bool expr_same(const struct lang_expr *x, const struct lang_expr *y);
struct lang_expr *expr_clone(struct arena *a, const struct lang_expr *e);
void expr_settle(struct lang_expr *e); /* rounds every float literal to its type */

/* Replaces a checked operation on literals by its value; an error where that is undefined. */
bool fold(struct checker *c, struct lang_expr *e);
/* v wrapped to an integer type's width, two's complement in 64 bits. */
uint64_t int_wrap(enum dtype t, uint64_t v);
bool int_fits(enum dtype to, enum dtype from, uint64_t v);
double int_to_double(enum dtype t, uint64_t v);
uint64_t double_to_int(enum dtype t, double v); /* truncates, saturates, NaN is 0 */

void scope_add(struct arena *a, struct lang_scope *s, struct lang_symbol *sym);
struct lang_symbol *scope_find_here(const struct lang_scope *s, const char *name);
const char *scope_nearest(struct arena *a, const struct lang_scope *s, const char *name,
                          bool function);

/* Definite assignment and reachability of a checked body (flow.c). */
bool flow_check(struct arena *a, const struct lang_stmt *body, uint32_t nlocal,
                const struct lang_func *func, struct diags *d);
/* Do all threads come to each barrier and each exchange? (uniform.c) */
bool uniform_check(struct arena *a, const struct lang_stmt *body, uint32_t nlocal,
                   const struct lang_options *opt, struct diags *d);
bool check_stmts(struct checker *c, struct lang_stmt *body);

#endif
