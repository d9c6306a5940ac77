/* What the validator's files share. Private to lib/ptx. */
#ifndef KAIO_PTX_VALIDATE_H
#define KAIO_PTX_VALIDATE_H

#include "ptx/scope.h"
#include "ptx/table.h"

struct ptx_validator {
    const struct ptx_module *module;
    const struct ptx_func *func;
    struct diags *diags;
    struct ptx_scopes *names;       /* variables and functions, in order */
    struct span span;               /* of the item that is looked at */
    struct ptx_seen fine[PTX_SEEN]; /* mnemonics that the target has */
};

/* "ld.global.f32", for messages. */
const char *ptx_mnemonic(const struct ptx_validator *v, const struct ptx_inst *in);
/* Operands against the row, and the words against each other. */
bool ptx_check_operands(struct ptx_validator *v, const struct ptx_inst *in);
bool ptx_check_words(struct ptx_validator *v, const struct ptx_inst *in);

#endif
