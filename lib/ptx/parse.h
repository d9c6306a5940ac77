/* What the files of the parser share. Private to lib/ptx. */
#ifndef KAIO_PTX_PARSE_H
#define KAIO_PTX_PARSE_H

#include "ptx/lex.h"
#include "ptx/scope.h"
#include "ptx/table.h"

/* A branch to a label that may still come: resolved when the block that holds it ends, or passed on
 * to the block around it. */
struct ptx_pending {
    uint32_t *label; /* where the index goes */
    const char *name;
    size_t len;
    struct span span;
};

struct ptx_parser {
    struct arena *arena;
    struct diags *diags;
    struct ptx_lexer lex;
    struct ptx_module *module;
    struct ptx_func *func; /* NULL at the module's level */
    struct ptx_scopes scopes;
    VEC(struct ptx_pending) pending;
    VEC(size_t) pending_from; /* per open block: where its own pending ones begin */
    size_t nreg;              /* registers of the whole module */
    bool fatal;               /* no use to go on */
};

enum {
    PTX_MAX_DEPTH = 100,        /* blocks in blocks, parentheses in parentheses */
    PTX_MAX_REGS = 1 << 20,     /* of a module */
    PTX_MAX_ELEMENTS = 1 << 10, /* of one { } or ( ) */
};

/* The cursor. */
bool ptx_at(const struct ptx_parser *p, char punct);
bool ptx_accept(struct ptx_parser *p, char punct);
/* Adds an error "expected WHAT" unless the punctuation is there. */
bool ptx_expect(struct ptx_parser *p, char punct, const char *after);
bool ptx_at_dot(const struct ptx_parser *p, const char *word);
bool ptx_accept_dot(struct ptx_parser *p, const char *word);
struct span ptx_tok_span(const struct ptx_parser *p);
/* Adds an error at the token under the cursor; returns false. */
bool ptx_expected(struct ptx_parser *p, const char *what);
/* Goes on behind the next semicolon, or before a closing brace. */
void ptx_recover(struct ptx_parser *p);
/* Too many errors to go on, or the end of the text. */
bool ptx_stop(const struct ptx_parser *p);

/* A non-negative integer (a constant expression) into *v, at most max. */
bool ptx_parse_uint(struct ptx_parser *p, uint64_t max, uint64_t *v);
/* An integer constant expression, C's operators; *is_float when it is a single float literal, whose
 * bits are then in *bits and whose kind (PTX_T_F32 ...) is *float_kind. */
struct ptx_constant {
    enum ptx_token_kind kind; /* PTX_T_INT, PTX_T_F32, PTX_T_F64, PTX_T_DECIMAL */
    uint64_t bits;
    bool is_unsigned;
};
bool ptx_parse_constant(struct ptx_parser *p, struct ptx_constant *c);

/* parse_decl.c: .reg and variables. The cursor is on .reg; on the space, behind the linkage; on the
 * linkage. */
void ptx_parse_regs(struct ptx_parser *p, struct ptx_func *f);
void ptx_parse_vars(struct ptx_parser *p, const char *linkage, struct span from);
const char *ptx_parse_linkage(struct ptx_parser *p); /* "" when there is none */
bool ptx_at_var(const struct ptx_parser *p);
/* One parameter between ( and ) of a function. */
struct ptx_var *ptx_parse_param(struct ptx_parser *p, struct ptx_func *f);
/* A name in the innermost scope; adds an error when it is taken there. */
struct ptx_symbol *ptx_declare(struct ptx_parser *p, struct ptx_token name,
                               enum ptx_symbol_kind kind);

/* parse_operand.c: after the mnemonic (words, which ptx_match took for in), up to the semicolon
 * (not read). */
bool ptx_parse_operands(struct ptx_parser *p, const struct ptx_word *words, size_t nword,
                        struct ptx_inst *in);
void ptx_pend_label(struct ptx_parser *p, uint32_t *label, struct ptx_token name);

/* parse_body.c: from { to }. */
void ptx_parse_body(struct ptx_parser *p, struct ptx_func *f);

/* A new item at the end of the function's or the module's list, comments before it first. */
struct ptx_item *ptx_item_new(struct ptx_parser *p, enum ptx_item_kind kind, struct span span);
void ptx_take_comments(struct ptx_parser *p);
/* The text from here up to the semicolon (or another end, not within brackets), one space between
 * tokens, comments left out; the cursor is then on the end. */
const char *ptx_text_until(struct ptx_parser *p, const char *ends);

#endif
