/* What a module asks for against what a device and its driver have. Private to lib/cuda. */
#ifndef KAIO_CUDA_LOAD_H
#define KAIO_CUDA_LOAD_H

#include "base/diag.h"

/* The .version and .target lines of PTX text. */
struct cu_header {
    unsigned version; /* 84 = PTX ISA 8.4; 0: not found */
    unsigned sm;      /* 90; 0: not found */
    char suffix;      /* 'a', 'f' or 0 */
    struct span version_span, target_span;
};
struct cu_header cu_header_of(const struct source *ptx);

bool cu_is_cubin(const struct source *s);

/* How many parameters an entry has in PTX text; false: it is not there, as in a cubin. */
bool cu_count_params(const struct source *ptx, const char *entry, size_t *n);

/* The newest PTX version that a driver of this CUDA version (12040) compiles; 0: not known, newer
 * than this table. */
unsigned cu_ptx_of_driver(int cuda_version);

/* False, with an error at the line, when the device (sm 80) or its driver cannot run the module. */
bool cu_header_fits(const struct cu_header *h, unsigned sm, int cuda_version, struct diags *d);

/* Line `number` (from 1) of PTX text, without its indentation; SPAN_NONE when there is none. */
struct span cu_line_span(const struct source *ptx, unsigned long number);
/* The JIT's error log as diagnostics at the PTX lines it names ("ptxas application ptx input, line
 * 12; error : ..."). */
void cu_report_log(const struct source *ptx, const char *log, struct diags *d);

#endif
