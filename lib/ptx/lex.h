/* PTX text as tokens. Private to lib/ptx. */
#ifndef KAIO_PTX_LEX_H
#define KAIO_PTX_LEX_H

#include "base/diag.h"

enum ptx_token_kind {
    PTX_T_END,
    PTX_T_IDENT,   /* foo  $L__BB0_1  %r1  %tid.x  _ */
    PTX_T_DOT,     /* .visible  .L2::cache_hint  .2d */
    PTX_T_INT,     /* bits; is_unsigned: written with U, or too large for a signed one */
    PTX_T_F32,     /* bits of 0fXXXXXXXX */
    PTX_T_F64,     /* bits of 0dXXXXXXXXXXXXXXXX */
    PTX_T_DECIMAL, /* bits of a double: 1.5  1e3 */
    PTX_T_STRING,  /* with its quotes */
    PTX_T_PUNCT,   /* one character: punct */
    PTX_T_BAD,     /* anything else; an error has been added */
};

struct ptx_token {
    enum ptx_token_kind kind;
    char punct;
    bool is_unsigned;
    uint64_t bits;
    const char *text;
    size_t len;
};

/* A comment that stands on lines of its own. */
struct ptx_comment {
    const char *text; /* what is behind // or between the marks */
    size_t len;
    bool block;
};

struct ptx_lexer {
    const struct source *src;
    struct arena *arena;
    struct diags *diags;
    const char *pos, *end;
    bool fresh_line;      /* only space so far on this line */
    struct ptx_token tok; /* the token under the cursor */
    const char *tok_end;  /* where the token before it ended: the end of what was read */
    VEC(struct ptx_comment) comments; /* since the caller last took them */
};

/* Puts the first token from that offset on under the cursor. NUL bytes at the end of the text don't
 * count. */
void ptx_lex_start(struct ptx_lexer *l, const struct source *src, size_t offset, struct arena *a,
                   struct diags *d);
/* Moves the cursor on by one token. */
void ptx_lex_next(struct ptx_lexer *l);
/* Is the token under the cursor followed by a colon? (Then it is a label.) */
bool ptx_lex_colon_follows(const struct ptx_lexer *l);
/* The rest of the line from the token under the cursor on, without comment and trailing space; the
 * cursor goes to the first token of the next line. Empty when the cursor is on another line than
 * what was read before. */
const char *ptx_lex_line(struct ptx_lexer *l);

struct span ptx_span(const struct ptx_lexer *l, const char *from, const char *to);

#endif
