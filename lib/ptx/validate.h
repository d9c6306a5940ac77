/* What the validator's files share. Private to lib/ptx. */
#ifndef KAIO_PTX_VALIDATE_H
#define KAIO_PTX_VALIDATE_H

#include "ptx/scope.h"
#include "ptx/table.h"

/* A mnemonic that the target has. What a plain register is taken for goes by its type alone, so
 * that most operands are those that were looked at before. */
struct ptx_known {
    struct ptx_seen seen;
    size_t noperand; /* of which .spec and .taken are; SIZE_MAX: of none */
    const struct ptx_spec *spec[PTX_MAX_OPERANDS];
    uint16_t taken[PTX_MAX_OPERANDS]; /* types of registers */
};

struct ptx_validator {
    const struct ptx_module *module;
    const struct ptx_func *func;
    struct diags *diags;
    struct ptx_scopes *names; /* variables and functions, in order */
    struct span span;         /* of the item that is looked at */
    struct ptx_known *known;  /* PTX_SEEN of them */
};

/* "ld.global.f32", for messages. */
const char *ptx_mnemonic(const struct ptx_validator *v, const struct ptx_inst *in);
/* Operands against the row, of what v->known has, and the words against each other. */
bool ptx_check_operands(struct ptx_validator *v, const struct ptx_inst *in);
bool ptx_check_words(struct ptx_validator *v, const struct ptx_inst *in);

#endif
