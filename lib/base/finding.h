/* What a diagnostic says in parts: a wrong access, a race, a deadlock that the simulator found. The
 * text of the diagnostic says the same for people; this is for programs, and for suppressions
 * (base/suppress.h).
 */
#ifndef KAIO_BASE_FINDING_H
#define KAIO_BASE_FINDING_H

#include "base/diag.h"
#include "base/json.h"

#include <stdint.h>

/* Where in the source (by .loc) an instruction comes from, and from there outwards what calls the
 * function that it was inlined into. */
struct finding_place {
    const char *file;
    uint32_t line, column; /* from 1; column 0: not known */
    const char *function;  /* whose call this is; NULL: the place itself */
};

/* An instruction that a thread executed. */
struct finding_side {
    const char *access; /* "load", "store", "atomic", ...; NULL: no access, or not known */
    struct span span;   /* of the PTX */
    bool has_block, has_thread;
    uint64_t block[3], thread[3];
    const struct finding_place *source;
    size_t nsource; /* 0: there is no .loc */
};

struct finding {
    const char *kind;  /* "race", "out-of-bounds", ...: device_finding_kind[] (run/device.h) */
    const char *check; /* what of --check found it; "fault": the launch ended there */
    const char *entry; /* the kernel */
    struct finding_side at, other;
    bool two;          /* there is an other */
    const char *space; /* "global", "shared", "local"; NULL: it is about no place in memory */
    uint64_t address;
    uint32_t bytes;         /* 0: not known */
    const char *buffer;     /* or variable; NULL: in none */
    const char *place;      /* "element 7 of 'tile' (shared f32[32])" */
    uint64_t count, blocks; /* how often it occurred, and in how many blocks; 0: not counted */
};

/* How a launch under checks went, behind its findings. */
struct finding_summary {
    const char *entry;
    size_t findings; /* distinct, without those suppressed */
    size_t shown, suppressed;
    uint64_t rest; /* occurrences beyond what there is room for */
    struct finding_tally {
        const char *kind;
        size_t n;
    } * by_kind;
    size_t nkind;
};

/* Says what the diagnostic at index i of the list is about; where it was not kept, nothing. */
void diags_explain(struct diags *d, size_t i, const struct finding *f);
/* A note that stands by itself, with the same in words. */
void diags_summarize(struct diags *d, const struct finding_summary *s);

/* Each diagnostic with its notes as a JSON object on a line of its own; kaio-run(1) has the
 * keys. */
void diags_json(const struct diags *d, struct buf *out);
/* The errors and warnings as elements of an array that is open. */
void diags_json_elements(const struct diags *d, struct json *j);

#endif
