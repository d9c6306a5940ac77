/* The CPU device: a PTX simulator. This header is private to lib/sim; the rest of the program sees
 * sim_device (run/device.h).
 *
 * A module is parsed once (lib/ptx); an entry is decoded once per launch into an array of struct
 * sim_op, one record per instruction: the function that executes it, and byte offsets of its
 * operands in a warp's register file. A warp is 32 lanes executed together. A register is one slot
 * of the file, lane-contiguous:
 *
 *     predicate            uint32_t, one bit a lane
 *     8 to 32 bits         uint32_t[32], 16-bit registers zero-extended
 *     64 bits              uint64_t[32]
 *
 * so that handlers are plain loops over 32 lanes which the compiler vectorises. Immediates and
 * special registers are slots of the same file, written when the file is made, so every operand is
 * just an offset.
 *
 * The handlers (exec_*.c) are compiled twice, for baseline x86-64 and for AVX2 with FMA; sim_open
 * chooses.
 *
 * The words that lib/sim uses for its own things:
 *
 *   record     one decoded instruction (struct sim_op); `op` is its number or a pointer to it
 *   slot       the place of one register, immediate or special register in the register file
 *   group      lanes of a warp that stand at the same record (struct sim_group); its rank says when
 *              it runs, its lap how often it was set back behind the others (warp.c, order.c)
 *   fuel       rounds of loops that a group has left before others may run
 *   spin       to go round a loop that may wait for others while nothing changes (stuck.c)
 *   turn       a cluster's place in the order in which clusters are begun; its blocks have it
 *   routine    a function that entries call, of which they contain the code (inline.h)
 *   window     64 GiB of simulated addresses, which hold one buffer
 *   meet       what shfl, vote and their like do: lanes wait for one another, then execute together
 *   flight     an operation that has been issued and has not taken effect in full (flight.h)
 *   piece      neighbouring bytes on both sides of a flight
 *   land       to take effect, of a flight's bytes or a product of wgmma
 *   bring      to move the bytes of a load to shared memory, rounded if its tensor map says so
 *   take       to remove a flight from the list of those that are in flight
 *   fold       to combine with what memory holds: red, and copies that add
 *
 * The sanitizer (check.h) has these:
 *
 *   shadow     what is known about the bytes of a memory: who accessed them, which are defined
 *   cell       the shadow of one granule, the smallest unit of memory that is told apart
 *   clock      one counter of the device, which every event that orders accesses advances
 *   agent      whoever accesses memory: a thread, or what copies or multiplies on its behalf
 *   fact       "all that these agents of that block did up to that clock"; a thread knows a list
 *   publish    to leave what one knows with a location or barrier; to observe: to learn it there
 *   taint      lanes of a register whose value is undefined, and where that came from
 *   finding    a defect, counted by kind and pair of records until the launch is over
 *   aim        where the lanes of a warp access memory (struct check_aim)
 */
#ifndef KAIO_SIM_SIM_H
#define KAIO_SIM_SIM_H

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "ptx/ptx.h"
#include "run/device.h"

enum {
    SIM_LANES = 32,
    SIM_MAX_THREADS = 1024, /* per block */
    SIM_MAX_WARPS = SIM_MAX_THREADS / SIM_LANES,
    SIM_BARRIERS = 16,
    SIM_SLOT = 64,       /* alignment of the register file and its slots, bytes */
    SIM_TICK = 256,      /* taken backward branches before a group of lanes lets others pass */
    SIM_POLL = 8,        /* as many of them counts one round of a loop that may wait for others */
    SIM_SLICE = 16,      /* ticks before a warp lets the block's other warps pass */
    SIM_PATIENCE = 1024, /* ticks of a loop that seems not to wait before it lets them pass */
};

/* For each lane of the mask, from the lowest on. The body may not change which lanes are left. */
#define FOR_LANES(lane, mask)                                                \
    for (uint32_t lane##_left = (mask), lane = 0;                            \
         lane##_left && (lane = (uint32_t)__builtin_ctz(lane##_left), true); \
         lane##_left &= lane##_left - 1)

/* ---- memory (mem.c) -------------------------------------------------------------------------- */

/* Simulated addresses. Bits 36 and up number a window of 64 GiB; a buffer starts 16 GiB into its
 * own window (plus a multiple of 256 that makes addresses look different), so an access that misses
 * it by less than that still names it. Local and shared memory have windows of their own in the
 * generic space. */
enum {
    SIM_WINDOW_BITS = 36,
    SIM_WINDOW_LOCAL = 1,
    SIM_WINDOW_SHARED = 2,
    SIM_WINDOW_CODE = 3,
    SIM_WINDOW_FIRST = 16, /* the first that buffers get */
    SIM_WINDOWS = 4096,    /* 48-bit addresses */
};
/* An address in shared::cluster has in bits 24 to 31 the rank of the block, plus one; 0: the
 * thread's own block. */
enum { SIM_RANK_SHIFT = 24, SIM_MAX_CLUSTER = 16 };
/* Bytes of a block's shared memory that are the system's, where a kernel asks for them. */
enum { SIM_RESERVED = 1024 };
#define SIM_LOCAL_BASE  ((uint64_t)SIM_WINDOW_LOCAL << SIM_WINDOW_BITS)
#define SIM_SHARED_BASE ((uint64_t)SIM_WINDOW_SHARED << SIM_WINDOW_BITS)
#define SIM_CODE_BASE   ((uint64_t)SIM_WINDOW_CODE << SIM_WINDOW_BITS) /* of functions: module.h */
/* inline.h: the local variable that frames of routines are in; labels of calls' lists of functions
 * begin so */
#define SIM_STACK     "$stack"
#define SIM_FUNCTIONS "$functions"

struct sim_buffer {
    uint64_t base, bytes; /* simulated address; size asked for */
    unsigned char *host;  /* NULL once released */
    void *block; /* what calloc gave: host is inside it, aligned; NULL: the caller's memory */
    void *names; /* of the label, malloc'd; NULL: the caller's */
    struct device_label label; /* name NULL: unlabelled */
    const char *what;          /* "buffer", "constant", "parameters" ... for reports */
    bool read_only, released;
    struct check_shadow *shadow; /* check.h; NULL: not checked */
    const struct sim_heap *heap; /* heap.h: that it is the buffer of; NULL: none */
};

struct sim_memory {
    struct sim_buffer window[SIM_WINDOWS];
    unsigned next, live;
    uint64_t bytes;        /* allocated in all */
    struct sim_heap *heap; /* of malloc() in kernels; NULL: no kernel has called it yet */
};

/* Finds room and zero-fills it. NULL when the machine has no memory or there are too many
 * buffers. */
struct sim_buffer *sim_mem_alloc(struct sim_memory *m, uint64_t bytes,
                                 const struct device_label *label, const char *what);
/* Makes a buffer of memory that the caller has. */
struct sim_buffer *sim_mem_bind(struct sim_memory *m, void *host, uint64_t bytes, const char *what);
/* Copies the label. False: no memory. */
bool sim_mem_label(struct sim_buffer *b, const struct device_label *label);
/* The buffer stays known as released, so that a use after it can be reported, until its window is
 * needed again. */
bool sim_mem_release(struct sim_memory *m, uint64_t address);
void sim_mem_free(struct sim_memory *m);
/* The buffer in whose window an address lies, inside its bounds or not; NULL when there is none. */
struct sim_buffer *sim_mem_near(struct sim_memory *m, uint64_t address);
/* Host address of [address, address + bytes), or NULL unless it lies inside one live buffer. */
unsigned char *sim_mem_host(struct sim_memory *m, uint64_t address, uint64_t bytes);
/* Host address of a thread's generic address, or NULL; at most 255 bytes. */
struct sim_warp;
const unsigned char *sim_mem_read(struct sim_warp *w, uint32_t lane, uint64_t address,
                                  uint32_t bytes);

/* ---- decoded code (decode*.c) ---------------------------------------------------------------- */

struct sim_warp;
struct sim_op;
/* Executes one instruction for the lanes of w and returns the record to go on with; NULL: the warp
 * stops here (w->stop says why). */
typedef const struct sim_op *(*sim_fn)(struct sim_warp *w, const struct sim_op *op);

struct sim_op {
    sim_fn fn[2];           /* [0]: all 32 lanes are active; [1]: only those in w->em */
    uint32_t d, a, b, c, e; /* operands: byte offsets into the register file */
    union {
        uint32_t guard; /* control instructions: the guard's offset, SIM_NO_GUARD if none */
        uint32_t elems; /* vector memory instructions */
    };
    uint64_t imm;
    union {
        uint32_t target; /* branch: index of the record to go to */
        uint32_t cache;  /* memory: index into the worker's buffer cache */
    };
    uint32_t serial; /* instructions before this one, labels and other helpers not counted */
    uint32_t item;   /* index into the function's items: where it came from */
    uint8_t round;   /* enum sim_round; vector memory instructions: enum sim_vector */
    uint8_t flags;   /* enum sim_flag */
    uint8_t size;    /* memory: bytes of the whole access; conversions: see cvt; between lanes: enum
                        sim_meeting */
    uint8_t
        more; /* meaning depends on the handler; branches: rounds of fuel that going back costs */
};
_Static_assert(sizeof(struct sim_op) == 64, "one record a cache line");
#define SIM_NO_GUARD UINT32_MAX
/* Room in a register file for one instruction's operands: five slots of up to 64 bits, a few
 * predicates. */
enum { SIM_SCRATCH = 5 * 8 * SIM_LANES + SIM_SLOT };

enum sim_round { SIM_RN, SIM_RZ, SIM_RM, SIM_RP };
enum sim_vector { SIM_V_SIGNED = 1, SIM_V_WIDE = 2, SIM_V_HALF = 4 /* signed, to 16 bits */ };
enum sim_flag {
    SIM_FTZ = 1,
    SIM_SAT = 2,       /* to [0, 1] for floats */
    SIM_GUARD_NOT = 4, /* control instructions: run where the guard is false */
    SIM_A32 = 8,       /* memory: the address register has 32 bits */
    SIM_STORES = 16,   /* memory: writes */
    SIM_READS = 32,    /* atomics: the old value is wanted */
    SIM_RELU = 64,
    SIM_SATFINITE = 128,
};

/* Instructions that lanes of a warp execute together, wherever in the code each of them stands:
 * what their operands are (wait.c). */
enum sim_meeting {
    SIM_MEET_SHFL = 1, /* d = a, b, c and the predicate imm, all 32-bit */
    SIM_MEET_VOTE,     /* predicate d = predicate a */
    SIM_MEET_BALLOT,   /* 32-bit d = predicate a */
    SIM_MEET_MATCH,    /* d, predicate imm = a, 32 bits */
    SIM_MEET_MATCH64,  /* ... 64 bits */
    SIM_MEET_REDUX,    /* d = a */
    SIM_MEET_SYNC,     /* nothing */
    SIM_MEET_ELECT,    /* d, predicate imm */
    SIM_MEET_ALL,      /* this and larger: all lanes of the warp, at this very instruction */
};

/* bar.*, in sim_op.more */
enum sim_bar { SIM_BAR_SYNC, SIM_BAR_ARRIVE, SIM_BAR_POPC, SIM_BAR_AND, SIM_BAR_OR };

/* One handler's two functions; mod is for float forms with rounding, ftz or sat, NULL where there
 * are none. */
struct sim_handler {
    sim_fn full, part, mod;
};

/* Operand types of handlers.def: how wide a register must be, and how an immediate is read. */
enum sim_type {
    SIM_T_none,
    SIM_T_p,
    SIM_T_u16,
    SIM_T_s16,
    SIM_T_h,
    SIM_T_u32,
    SIM_T_s32,
    SIM_T_f32,
    SIM_T_u64,
    SIM_T_s64,
    SIM_T_f64,
};

enum sim_handler_id {
    SIM_H_NONE,
#define SIM_ROW(NAME, SPELL, D, A, B, C) SIM_H_##NAME,
#include "sim/handlers.def"
    SIM_H_COUNT
};

/* Fill the table with the functions of one build (exec_*.c). */
struct check_aim;
struct check_run;
struct sim_build {
    const char *name; /* "avx2", "baseline" */
    struct sim_handler h[SIM_H_COUNT];
    /* Folds elements of 2, 4 or 8 bytes into memory, n bytes in all; code: enum sim_atom. shared:
     * as in shared memory; alone: no other worker comes between. */
    void (*fold)(unsigned char *to, const unsigned char *from, uint32_t n, unsigned element,
                 unsigned code, bool shared, bool alone);
    /* for the checks (check_cells.h): where the lanes of w->em access memory; weak accesses. These
     * give the lanes whose accesses are still to be looked at, one by one. */
    void (*check_aim)(struct sim_warp *w, const struct sim_op *op, struct check_aim *x);
    uint32_t (*check_read)(const struct check_run *r);
    uint32_t (*check_write)(const struct check_run *r);
};
void sim_exec_fill_baseline(struct sim_build *b);
void sim_exec_fill_avx2(struct sim_build *b);
/* The part of it that is the same in both (once.c). */
void sim_fill_once(struct sim_build *b);
/* Takes the handlers that a machine without AVX2 gets, for tests. */
void sim_use_baseline(struct device *dev);

/* A slot that is written when a register file is made (constants), when a warp starts or when a
 * block starts. */
struct sim_const {
    uint32_t off;
    uint64_t bits;
    bool wide; /* 64-bit slot */
};
struct sim_special {
    uint32_t off;
    enum ptx_sreg reg;
};

/* The address where a variable lives. */
struct sim_symbol {
    const struct ptx_var *var;
    uint64_t address;
};
struct sim_symbols {
    VEC(struct sim_symbol) list;
};

/* An entry made ready to run. Lives in the launch's arena. */
struct sim_code {
    const struct ptx_module *module;
    const struct ptx_func *func;
    struct sim_op *op;
    uint32_t nop, ninst;
    /* by record: where it comes in the order in which groups of lanes run (order.c) */
    const uint32_t *rank;
    const uint32_t
        *late; /* ... for a group that came back to the head of a loop; 0: no such head */
    const struct sim_targets *targets; /* of brx.idx, by sim_op.target */
    uint32_t scratch;                  /* SIM_SCRATCH bytes of the file, for wait.c */
    uint32_t file_bytes;               /* one warp's register file */
    uint32_t pred_bytes;               /* predicates lie at its start, ... */
    uint32_t zero_bytes; /* ... then registers; this much is zeroed when a warp starts */
    uint32_t ncache;     /* memory instructions */
    VEC(struct sim_const) consts;
    VEC(struct sim_special) specials;
    uint64_t shared_bytes;  /* static */
    uint32_t dynamic_align; /* where the dynamic part begins behind them: a multiple of this */
    uint64_t local_bytes;   /* per thread */
    uint32_t registers; /* of a thread, as far as setmaxnreg knows them (wgmma.h); 0: not known */
    bool allocates;     /* it calls malloc() or free() */
    bool ordered;       /* what blocks learn of each other may show: they must run on one thread */
    bool cooperates;    /* has barriers or may wait for others: a warp can stop half-way */
    bool reserves; /* asks where the system's shared memory is: SIM_RESERVED bytes at the end */
    struct sim_symbols vars; /* parameters, shared and local variables: addresses in their space */
};

struct sim_targets {
    uint32_t n;
    const uint32_t *op; /* records */
};

struct sim_decode_in {
    struct arena *arena;
    const struct ptx_module *module;
    const struct ptx_func *func;
    const struct sim_build *build;
    const struct sim_symbols *symbols; /* module-level variables in memory */
    const unsigned char *params;       /* the argument block: loads from it become constants */
    uint64_t param_base;               /* its simulated address */
    const uint64_t *param_offset;      /* of each parameter in it */
    uint64_t param_bytes;
    unsigned sm; /* whose tensor cores: 90 for sm_90 */
};
/* NULL with errors in d when the entry has an instruction that the simulator does not have, or one
 * that is not valid. */
struct sim_code *sim_decode(const struct sim_decode_in *in, struct diags *d);

/* ---- execution (warp.c, block.c, launch.c) --------------------------------------------------- */

enum sim_stop {
    SIM_RUNNING,
    SIM_DONE,    /* every lane has exited */
    SIM_BLOCKED, /* every group waits at a barrier or for other lanes */
    SIM_YIELD,   /* its slice is over */
    SIM_FAULT,   /* see the block's fault */
};

/* Lanes that stand at the same instruction. */
struct sim_group {
    uint32_t pc, mask;
    uint32_t rank; /* the group with the lowest runs first, ... */
    uint32_t lap;  /* ... but for those that were set back because they may wait for others */
    uint8_t waits; /* 0: ready; else enum sim_wait */
};
enum sim_wait {
    SIM_WAIT_BAR = 1,                            /* + n: behind barrier n, for it to complete */
    SIM_WAIT_WARP = SIM_WAIT_BAR + SIM_BARRIERS, /* + n: ..., for its warp's other lanes to come */
    SIM_WAIT_LANES = SIM_WAIT_WARP + SIM_BARRIERS, /* for lanes that its mask names */
    SIM_WAIT_CLUSTER,                              /* behind barrier.cluster.wait */
    SIM_WAIT_MBAR,      /* at mbarrier.try_wait, for its phase to complete or its time to be over */
    SIM_WAIT_WARPGROUP, /* at wgmma.wait_group, for the other warps of the warpgroup to have
                           committed the group */
    SIM_WAIT_REGISTERS, /* at setmaxnreg.inc, for others to release enough */
};

/* The buffer that a memory instruction last used, in a worker. Valid for that instruction's size
 * and kind only. */
struct sim_cached {
    uint64_t base, limit; /* the access may start at base .. base + limit */
    unsigned char *host;  /* NULL: nothing cached */
};

struct sim_warp {
    _Alignas(64) uint32_t lm[SIM_LANES]; /* lane mask: ~0 for each lane of lm_for */
    unsigned char *r;                    /* register file */
    uint32_t mask;                       /* lanes of the group that runs */
    uint32_t em; /* lanes this instruction runs for: mask less what its guard excludes */
    uint32_t lm_for;
    uint32_t part; /* mask != ~0: which of sim_op.fn to call */
    uint32_t lap;  /* of the group that runs */
    int32_t fuel;
    uint32_t ticks, patience;
    uint32_t ngroup; /* groups that do not run now */
    const struct sim_op *code;
    const uint32_t *rank; /* sim_code's */
    struct sim_cached *cache;
    struct sim_block *block;
    unsigned char *local; /* lane i's local memory starts at local + i * local_bytes */
    uint64_t local_bytes;
    uint64_t count;   /* thread-instructions executed */
    uint64_t counted; /* of those, the ones in the block's count */
    uint32_t mark;    /* serial up to which they are counted */
    uint32_t live;    /* lanes that have not exited */
    uint32_t index;   /* in the block */
    enum sim_stop stop;
    bool started;
    bool spun;                   /* it stopped in a loop that may wait for others */
    uint32_t cluster_came;       /* lanes at the cluster's barrier, which is not complete */
    uint32_t came[SIM_BARRIERS]; /* lanes at a barrier at which not all of the warp's are yet */
    uint32_t expired;            /* lanes whose mbarrier.try_wait has waited long enough */
    uint32_t bulk[SIM_LANES];    /* cp.async.bulk groups committed */
    uint32_t registers;          /* that setmaxnreg counts, each thread's; 0: not known */
    struct sim_wgmmas *wgmmas;   /* wgmma.h; NULL: there was none yet */
    struct sim_copies *copies;   /* of cp.async, in flight; NULL: there was none yet */
    struct sim_group group[SIM_LANES];
};

enum sim_fault_kind {
    SIM_NO_FAULT,
    SIM_F_BOUNDS,
    SIM_F_READONLY,
    SIM_F_ALIGN,
    SIM_F_SPACE, /* a row of a matrix that is not in shared memory */
    SIM_F_TRAP,
    SIM_F_ASSERT, /* .text */
    SIM_F_FREE,   /* free() of .address */
    SIM_F_DEADLOCK,
    SIM_F_LIVELOCK, /* all threads that can run spin, and nothing changes */
    SIM_F_LIMIT,
    SIM_F_TOTAL, /* the limit was passed by the blocks together */
    SIM_F_INTERRUPTED,
    SIM_F_BARRIER,  /* a barrier number or count that cannot be */
    SIM_F_COUNT,    /* another count of threads than those who came before gave */
    SIM_F_TWICE,    /* at the cluster's barrier without a wait in between */
    SIM_F_INDEX,    /* brx.idx past its list */
    SIM_F_APART,    /* part of a warp executes what only a whole one can */
    SIM_F_SIZE,     /* cp.async of more bytes than it copies */
    SIM_F_REMOTE,   /* in another block of the cluster, where it must be in the thread's own */
    SIM_F_MBARRIER, /* .mbar says what is wrong */
    SIM_F_BULK,     /* a bulk copy of .bytes, not a multiple of 16 */
    SIM_F_COLUMN,   /* a tensor's box that begins .address bytes into a row, no multiple of 16 */
    SIM_F_START, /* pixels from .address on (int64_t) along dimension .bytes, where no window is */
    SIM_F_RANKS, /* .multicast::cluster to blocks that the cluster does not have: .lanes */
    SIM_F_WGMMA, /* .why: enum sim_wgmma_fault */
    SIM_F_REGISTERS, /* setmaxnreg.dec to more than .others that each thread has */
    SIM_F_TENSOR,    /* .tensor says what is wrong with the tensor map at .address */
    SIM_F_MEMORY,    /* the host has no memory for the block */
    SIM_F_ABANDONED, /* nothing of its own: a block with a lower index failed */
};

/* Where a group of lanes stands, and what it waits for. */
struct sim_stand {
    uint64_t block; /* linear index */
    uint32_t warp, op, mask;
    uint8_t waits;
    uint32_t named, missing; /* SIM_WAIT_LANES, SIM_WAIT_WARP: lanes; SIM_WAIT_WARPGROUP: warps */
    uint32_t barrier, came,
        wanted; /* SIM_WAIT_BAR: its number, threads; SIM_WAIT_REGISTERS: registers */
    /* SIM_WAIT_MBAR, and those that poll an mbarrier: where it is, the phase's parity, arrivals
     * that it still waits for and that a phase has (came, wanted), bytes that it still waits for */
    bool mbar;
    uint32_t offset, parity;
    int32_t bytes;
};

struct sim_fault {
    enum sim_fault_kind kind;
    uint32_t op; /* record */
    uint32_t warp, lane;
    uint64_t block;   /* linear index */
    uint64_t turn;    /* the block's */
    uint64_t address; /* generic */
    uint32_t bytes;
    uint8_t space; /* enum sim_space */
    bool store;
    uint32_t others;  /* SIM_F_LIVELOCK: blocks or clusters that spin, too, if that is known */
    uint8_t why;      /* SIM_F_WGMMA */
    uint32_t lanes;   /* SIM_F_APART */
    const char *text; /* SIM_F_ASSERT */
    const struct ptx_var *var; /* the access has left this variable; NULL: not known to have */
    struct {
        uint8_t error;   /* enum sim_mbar_error */
        uint32_t offset; /* in the shared memory of */
        uint32_t rank;   /* that block of the cluster */
        uint64_t state;  /* its value */
        uint64_t count;  /* SIM_MBAR_RANGE and the like: the count asked for */
        uint32_t op;     /* SIM_MBAR_AGAIN: the record that made it */
    } mbar;              /* SIM_F_MBARRIER */
    struct {
        uint8_t error; /* enum sim_tensor_error */
        unsigned char map[DEVICE_TENSOR_MAP];
    } tensor; /* SIM_F_TENSOR */
    /* where every group stood, for deadlocks and limits; in the launch's arena */
    VEC(struct sim_stand) stands;
};

/* A warp has come when all its lanes that have not exited are there; it counts as 32 threads then
 * (PTX ISA, barrier).
 */
struct sim_barrier {
    uint32_t arrived, expected; /* threads; expected 0: all warps that live */
    bool used;                  /* someone has come since it completed last */
    uint32_t yes, lanes;        /* of .red: lanes whose predicate holds, all lanes */
};

/* Operations in flight of a cluster (flight.h), in the order of issue. */
struct sim_flights {
    struct sim_flight *first, **last;
    uint64_t issued;
    uint64_t random; /* state of the numbers drawn; 0: none are, everything is late */
};
struct sim_mbarrier;

/* The watch over blocks that all spin (stuck.c). */
struct sim_watch {
    uint64_t turns; /* since one did anything else than spin; who watches zeroes it then */
    uint64_t saved, until;
};

struct sim_block {
    struct sim_launch *launch;
    struct sim_worker *worker;
    uint64_t index;       /* in the grid, linear */
    uint64_t turn;        /* of its cluster: in this order they are begun */
    struct device_dim at; /* %ctaid */
    struct sim_block *
        *peer; /* the blocks of the cluster by rank; peer[0] is what the worker keeps */
    struct sim_block *alone; /* peer of a block without a cluster */
    uint32_t npeer, rank;
    uint32_t cluster_came;      /* in peer[0]: threads at the cluster's barrier */
    struct sim_flights flights; /* in peer[0] */
    struct sim_mbarrier *mbar;  /* its nmbar objects (mbarrier.h) */
    uint32_t nmbar, cap_mbar;
    unsigned char *shared;
    uint64_t shared_bytes;
    unsigned char *local;
    uint32_t nwarp, nlive, nwarp_live; /* warps; threads, warps that have not exited */
    uint32_t spare_registers;          /* that setmaxnreg.dec has released */
    uint64_t count;
    struct sim_barrier barrier[SIM_BARRIERS];
    struct sim_fault fault;
    bool spins; /* when it stopped last, all its warps were in loops that may wait for others */
    struct sim_watch watch;    /* in peer[0]: of waits whose time is over */
    struct check_block *check; /* check.h; NULL: not checked */
    struct sim_block *next;
    struct sim_warp warp[];
};

/* A file that .file gives a number; text NULL: it can't be read. */
struct sim_source {
    uint32_t file;
    const struct source *text;
};

/* What a printf() of a thread said. */
struct sim_print {
    uint64_t block;
    size_t number; /* of the launch's */
    const char *text;
    size_t n;
};

/* What a launch's workers share. Read-only while they run, but for the atomics and the fault. */
struct sim_launch {
    const struct sim_code *code;
    const struct device_launch *what;
    const struct device_options *options;
    struct sim_memory *memory;
    const struct sim_build *build;
    uint64_t nblock;
    struct device_dim cluster; /* blocks; 1,1,1 without one */
    uint32_t ncluster;         /* blocks in each */
    bool many;                 /* several workers run it */
    uint32_t resident;         /* blocks that the device runs at a time */
    uint32_t threads;          /* per block */
    uint64_t shared_bytes;
    uint64_t limit; /* thread-instructions, UINT64_MAX: none */
    uint64_t seed;  /* of what is in flight; 0: it is late */
    const volatile int *interrupted;
    void (*progress)(void *ctx, uint64_t done,
                     uint64_t blocks); /* for the caller's thread; or NULL */
    void *progress_ctx;
    struct arena *arena; /* for the fault's lists and what is printed; used under lock */
    VEC(struct sim_print) prints;
    uint64_t printed, unprinted; /* bytes; calls that there was no room for */
    _Atomic uint64_t next_turn;
    _Atomic uint64_t begun, ended; /* blocks */
    /* those with a later turn need not run: an earlier one has failed */
    _Atomic uint64_t stop_after;
    pthread_mutex_t lock;
    struct sim_fault fault;         /* of the first block that failed */
    _Atomic uint64_t count;         /* thread-instructions of the blocks that are done */
    struct check *check;            /* check.h; NULL: not checked */
    VEC(struct sim_source) sources; /* files that reports have named */
};

/* A worker thread: its register files, blocks and cache. */
struct sim_worker {
    struct sim_launch *launch;
    struct sim_cached *cache;
    unsigned char **spare_file;
    uint32_t nspare, cap_spare;
    struct sim_block *spare_block;
    pthread_t thread;
    bool started;
};

/* Called by handlers; w->em or w->mask as the handler left them. */

/* The running group goes on at op, of that rank, where others may stand or should run first. */
const struct sim_op *sim_arrive(struct sim_warp *w, const struct sim_op *op, uint32_t rank);
/* It jumped from one record to another while others wait. */
const struct sim_op *sim_jump(struct sim_warp *w, const struct sim_op *from,
                              const struct sim_op *to);
/* Its fuel is spent; it jumped back from one record to another. */
const struct sim_op *sim_tick(struct sim_warp *w, const struct sim_op *from,
                              const struct sim_op *to);
const struct sim_op *sim_split(struct sim_warp *w, const struct sim_op *at, uint32_t taken,
                               const struct sim_op *target, const struct sim_op *next);
/* brx.idx: lane i goes to to[i]. */
const struct sim_op *sim_scatter(struct sim_warp *w, const struct sim_op *at,
                                 const uint32_t to[SIM_LANES], uint32_t lanes);
/* nanosleep: it lets all others pass. */
const struct sim_op *sim_sleep(struct sim_warp *w, const struct sim_op *op);
const struct sim_op *sim_exit(struct sim_warp *w, const struct sim_op *op, uint32_t lanes);
/* Some lanes that the masks of these name are not here: those whose fellows have all come go on,
 * the others wait. */
const struct sim_op *sim_meet(struct sim_warp *w, const struct sim_op *op, uint32_t lanes);
/* Part of a warp has come to what all 32 lanes must execute together: it waits for the others, or
 * that is a fault.
 */
const struct sim_op *sim_together(struct sim_warp *w, const struct sim_op *op, uint32_t lanes);
/* bar.*: op->more is enum sim_bar, yes the lanes whose predicate holds. */
const struct sim_op *sim_barrier(struct sim_warp *w, const struct sim_op *op, uint32_t lanes,
                                 uint32_t id, uint32_t threads, uint32_t yes);
/* barrier.cluster.arrive and .wait */
const struct sim_op *sim_cluster_arrive(struct sim_warp *w, const struct sim_op *op,
                                        uint32_t lanes);
const struct sim_op *sim_cluster_wait(struct sim_warp *w, const struct sim_op *op, uint32_t lanes);

/* Spaces of a memory instruction, in sim_op.more. */
enum sim_space { SIM_IN_GLOBAL, SIM_IN_SHARED, SIM_IN_LOCAL, SIM_IN_GENERIC };

/* Checks the access of each lane of w->em at at[lane] (an address in the instruction's space) and
 * turns at into host addresses. False: a lane must not do that, and the warp has stopped with the
 * fault. */
bool sim_resolve(struct sim_warp *w, const struct sim_op *op, uint64_t at[SIM_LANES]);

const struct sim_op *sim_fault_at(struct sim_warp *w, const struct sim_op *op, uint32_t lane,
                                  enum sim_fault_kind kind);
/* sim_fault_at() with what `about` says of an access or the like: its address, bytes, space, store,
 * others, why and lanes. False. */
bool sim_fault_about(struct sim_warp *w, const struct sim_op *op, uint32_t lane,
                     enum sim_fault_kind kind, struct sim_fault about);

/* ---- asynchronous copies (copy.c) ------------------------------------------------------------ */

/* cp.async of one instruction. Bytes move when the thread waits for the copy's group, as late as
 * they may: who reads them sooner gets what was there before. */
struct sim_copy {
    uint32_t op;                          /* the record */
    uint32_t lanes;                       /* whose copies are in flight */
    uint32_t group[SIM_LANES];            /* of the lane's groups, from 0 */
    uint32_t to[SIM_LANES];               /* offset in the block's shared memory */
    const unsigned char *from[SIM_LANES]; /* in the host's memory; NULL where nothing is read */
    uint64_t source[SIM_LANES];           /* its simulated address */
    uint8_t valid[SIM_LANES];             /* bytes read; the rest is zeroed */
    uint8_t size;
    uint32_t serial; /* instructions of the warp that issued copies before this one */
};

struct sim_copies {
    struct sim_copy *v; /* those from head on; v[i].lanes 0: it is done */
    uint32_t head, n, cap;
    uint32_t issued;               /* instructions */
    uint32_t committed[SIM_LANES]; /* groups */
    /* what a copy's source held when it was issued, as v; NULL: not checked */
    unsigned char (*seen)[SIM_LANES][16];
};

/* cp.async: bytes op->size, to op->a + op->imm in shared memory, from the address op->b; op->c:
 * bytes to read (0: all), op->e: a predicate of the lanes that read none (0: all read).
 * commit_group; wait_group op->imm, with op->more wait_all. */
const struct sim_op *sim_copy_issue(struct sim_warp *w, const struct sim_op *op);
const struct sim_op *sim_copy_commit(struct sim_warp *w, const struct sim_op *op);
const struct sim_op *sim_copy_wait(struct sim_warp *w, const struct sim_op *op);
/* Completes the copies of these lanes that an instruction before that serial issued. */
void sim_copies_land(struct sim_warp *w, uint32_t lanes, uint32_t before);
/* None are in flight; and without memory for them. */
void sim_copies_reset(struct sim_copies *c);
void sim_copies_free(struct sim_copies *c);

/* A lane's value in a slot of 32 or 64 bits. */
static inline uint32_t sim_word(const struct sim_warp *w, uint32_t slot, uint32_t lane)
{
    uint32_t v;
    memcpy(&v, w->r + slot + 4 * lane, 4);
    return v;
}
static inline uint64_t sim_wide(const struct sim_warp *w, uint32_t slot, uint32_t lane)
{
    uint64_t v;
    memcpy(&v, w->r + slot + 8 * lane, 8);
    return v;
}

/* Adds what has run since the last mark, up to op (not included), to the warp's count. */
static inline void sim_count(struct sim_warp *w, const struct sim_op *op)
{
    w->count += (uint64_t)(op->serial - w->mark) * (unsigned)__builtin_popcount(w->mask);
    w->mark = op->serial;
}
static inline void sim_set_mask(struct sim_warp *w, uint32_t mask)
{
    w->mask = w->em = mask;
    w->part = mask != UINT32_MAX;
}

/* Groups of lanes (warp.c), for wait.c: a group that stops at a record; the next that can run, NULL
 * when the warp stops; what a waiting group waits for. */
void sim_push(struct sim_warp *w, uint32_t pc, uint32_t mask, uint8_t waits);
void sim_take_out(struct sim_warp *w, uint32_t group);
const struct sim_op *sim_next_group(struct sim_warp *w);
static inline uint32_t sim_pc(const struct sim_warp *w, const struct sim_op *op)
{
    return (uint32_t)(op - w->code);
}
struct sim_stand sim_stand_of(const struct sim_warp *w, const struct sim_group *g);

/* Makes the warp stand at the entry's start. False when the host has no memory. */
bool sim_warp_start(struct sim_block *b, uint32_t index);
/* Runs the warp until it stops; w->stop says why. */
void sim_warp_run(struct sim_warp *w);
bool sim_warp_ready(const struct sim_warp *w);
/* Fills a special register's slot. w NULL: only those that are the same in every warp; returns
 * false for others. */
bool sim_special(const struct sim_launch *l, const struct sim_warp *w, enum ptx_sreg reg,
                 unsigned char *slot);

/* Runs the whole grid on so many threads. False when a block failed: l->fault. */
bool sim_run_grid(struct sim_launch *l, unsigned threads);

/* ---- reports (report.c) ---------------------------------------------------------------------- */

/* Adds the error for a fault, with its notes, to d. */
void sim_report(struct sim_launch *l, const struct sim_fault *f, struct diags *d);

#endif
