/* What is wrong with a module, and what is said about it: the first report, with its place. Where
 * ptxas is at hand, it must refuse the same texts. */
#include <config.h>

#include "ptx/ptx.h"

#include "ptxas.h"
#include "tap.h"

#define HEAD ".version 8.0\n.target sm_80\n.address_size 64\n"
#define KERNEL_OF(head, body)                                                                      \
    head                                                                                           \
        ".entry k(.param .u64 a)\n{\n"                                                             \
        ".reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>; .reg .f64 %fd<9>; .reg .pred %p<9>; " \
        ".reg .b16 %h<9>; .reg .u32 %u<9>;\n" body "\nret;\n}\n"
#define KERNEL(body) KERNEL_OF(HEAD, body)

static const struct {
    const char *name, *text, *want;
    bool ptxas_too; /* ptxas refuses it as well */
} cases[] = {
    /* Refused by the parser. */
    {"not PTX", "kernel: saxpy\n",
     "1:1: error: expected a directive such as .version, .global or .entry, not 'kernel'", true},
    {"no target", ".version 8.0\n", "1:1: error: no .target", true},
    {"bad version", ".version 8\n.target sm_80\n",
     "1:10: error: expected a version such as 8.0, not '8'", true},
    {"version twice", HEAD ".version 8.0\n", "4:10: error: .version is given twice", true},
    {"unknown target", ".version 8.0\n.target sm_81\n", "2:9: error: unknown target 'sm_81'", true},
    {"32-bit addresses", ".version 8.0\n.target sm_80\n.address_size 32\n",
     "3:15: error: only 64-bit addresses are supported", true},
    {"unknown directive", HEAD ".vizible .entry k() { ret; }\n",
     "4:1: error: expected a directive such as .version, .global or .entry, not '.vizible'", true},
    {"textures", HEAD ".global .texref t;\n",
     "4:9: error: texture and surface references are not supported", false},
    {"cut off in the body", HEAD ".entry k()\n{\n	ret;\n",
     "5:1: error: the body of 'k' is not closed with '}'", true},
    {"cut off in parameters", HEAD ".entry k(.param .u64 a",
     "4:23: error: expected ',' after the parameter, but the text ends here", true},
    {"comment not closed", HEAD "/* so on", "4:1: error: comment is not closed with '*/'", true},
    {"string not closed", HEAD ".file 1 \"x\n.pragma \"x\n;", "5:9: error: string is not closed",
     true},
    {"unexpected character", KERNEL("add.u32 %r1, %r2, #3;"), "7:19: error: unexpected character",
     true},
    {"UTF-8 character", KERNEL("add.u32 %r1, %r2, é;"), "7:19: error: unexpected character", true},
    {"misspelt name", KERNEL("ad.u32 %r1, %r2, %r3;"),
     "7:1: error: unknown instruction 'ad.u32' (did you mean 'add.u32'?)", true},
    {"misspelt word", KERNEL("add.u23 %r1, %r2, %r3;"),
     "7:1: error: unknown instruction 'add.u23' (did you mean 'add.u32'?)", true},
    {"misspelt word of ld", KERNEL("ld.gobal.f32 %f1, [%rd1];"),
     "7:1: error: unknown instruction 'ld.gobal.f32' (did you mean 'ld.global.f32'?)", true},
    {"missing rounding", KERNEL("fma.f32 %f1, %f1, %f1, %f1;"),
     "7:1: error: unknown instruction 'fma.f32' (did you mean 'fma.rn.f32'?)", true},
    {"no such instruction", KERNEL("frobnicate.b32 %r1;"),
     "7:1: error: unknown instruction 'frobnicate.b32'", true},
    {"too few operands", KERNEL("add.u32 %r1, %r2;"), "7:9: error: 'add' takes 3 operands, not 2",
     true},
    {"too many operands", KERNEL("add.u32 %r1, %r2, %r3, %r4;"),
     "7:9: error: 'add' takes 3 operands, not 4", true},
    {"no semicolon", KERNEL("add.u32 %r1, %r2, %r3\nsub.u32 %r1, %r2, %r3;"),
     "8:1: error: expected ',' or ';' after the operand, not 'sub'", true},
    {"undeclared register", KERNEL("add.u32 %r1, %r2, %r9;"),
     "7:19: error: '%r9' is neither a declared register nor a special register", true},
    {"undeclared name", KERNEL("mov.u64 %rd1, table;"), "7:15: error: 'table' is not declared",
     true},
    {"undefined label", KERNEL("bra done;"), "7:5: error: label 'done' is not defined here", true},
    {"label of another block", KERNEL("bra inner;\n{ inner: }"),
     "7:5: error: label 'inner' is not defined here", true},
    {"label twice", KERNEL("L:\nL:"), "8:1: error: 'L' is declared twice", true},
    {"register twice", KERNEL(".reg .f32 %r<3>;"), "7:11: error: '%r' is declared twice", true},
    {"variable twice", HEAD ".global .u32 x;\n.global .u32 x;\n",
     "5:14: error: 'x' is declared twice", true},
    {"function twice", HEAD ".func f() { ret; }\n.func f() { ret; }\n",
     "5:7: error: 'f' is declared twice", true},
    {"parameter twice", HEAD ".entry k(.param .u32 a, .param .u32 a) { ret; }\n",
     "4:37: error: 'a' is declared twice", true},
    {"guard is no predicate", KERNEL("@%r1 bra L; L:"),
     "7:2: error: '%r1' is no predicate register", true},
    {"guard is not declared", KERNEL("@%q bra L; L:"),
     "7:2: error: expected a declared predicate register, not '%q'", true},
    {"vector registers", KERNEL(".reg .v4 .f32 %v;"),
     "7:6: error: vector registers are not supported; declare one register per element", false},
    {"bad type", KERNEL(".reg .x32 %x;"),
     "7:6: error: expected a type such as .b32 or .f32, not '.x32'", true},
    {"too many registers", KERNEL(".reg .b32 %z<99999999>;"),
     "7:14: error: expected the number of registers, not '99999999'", false},
    {"number of registers missing", KERNEL(".reg .b32 %z<n>;"),
     "7:14: error: expected the number of registers, not 'n'", true},
    {"number too large", KERNEL("mov.u64 %rd1, 0x1FFFFFFFFFFFFFFFF;"),
     "7:15: error: number does not fit 64 bits", false},
    {"bad hexadecimal float", KERNEL("mov.f32 %f1, 0f3F80;"),
     "7:14: error: 0f needs exactly 8 hexadecimal digits", true},
    {"bad number", KERNEL("mov.u32 %r1, 12ab;"), "7:14: error: not a number", true},
    {"division by zero in a constant", KERNEL("mov.u32 %r1, 5 / 0;"),
     "7:19: error: division by zero in a constant", true},
    {"array too large", HEAD ".global .b8 x[1099511627777];\n",
     "4:14: error: the array is too large", false},
    {"alignment is no power of two", HEAD ".global .align 12 .b8 x[4];\n",
     "4:16: error: an alignment is a power of two", true},
    {"bracket not closed", KERNEL("ld.global.f32 %f1, [%rd1;"),
     "7:25: error: expected ']' after the address, not ';'", true},
    {"address is no address", KERNEL("ld.global.f32 %f1, [%tid.x];"),
     "7:27: error: expected an address: a register, a variable or a constant, not ']'", true},
    {"minus in an address", KERNEL("ld.global.f32 %f1, [%rd1-8];"),
     "7:25: error: expected ']' after the address, not '-'", true},
    {"brace not closed", KERNEL("st.global.v2.f32 [%rd1], {%f1, %f2;"),
     "7:35: error: expected ',' after the element, not ';'", true},
    {"address of a label", KERNEL("L: mov.u64 %rd1, L;"), "7:18: error: a label can't stand here",
     true},
    {".loc without numbers", KERNEL(".loc 1 x 2"),
     "7:8: error: expected the numbers of file, line and column after .loc, not 'x'", true},
    {"section not closed", HEAD ".section .debug_info\n{\n.b8 1\n",
     "6:6: error: expected '}' after the section, but the text ends here", true},
    {"instruction outside a function", HEAD "add.u32 %r1, %r2, %r3;\n",
     "4:1: error: expected a directive such as .version, .global or .entry, not 'add'", true},
    {"call without a function", KERNEL("call (%r1), ;"),
     "7:13: error: expected a function, not ';'", true},
    /* Read, and refused by the validator. */
    {"target newer than the version", ".version 7.0\n.target sm_90\n.entry k() { ret; }\n",
     "1:10: error: target sm_90 needs PTX 7.8 (the module says 7.0)", true},
    {"instruction newer than the target",
     KERNEL_OF(".version 7.0\n.target sm_70\n", "tanh.approx.f32 %f1, %f2;"),
     "6:1: error: 'tanh.approx.f32' needs sm_75 (the target is sm_70)", true},
    {"word newer than the target",
     KERNEL_OF(".version 7.4\n.target sm_75\n", "ld.global.L2::256B.f32 %f1, [%rd1];"),
     "6:1: error: 'ld.global.L2::256B.f32' needs sm_80 (the target is sm_75)", true},
    {"instruction newer than the version",
     KERNEL_OF(".version 7.0\n.target sm_75\n", "redux.sync.add.s32 %r1, %r2, -1;"),
     "6:1: error: 'redux.sync.add.s32' needs sm_80 (the target is sm_75)", true},
    {"instruction newer than the version, target right",
     KERNEL_OF(".version 7.8\n.target sm_89\n", "mul.bf16 %h1, %h2, %h3;"),
     "6:1: error: 'mul.bf16' needs sm_90 (the target is sm_89)", true},
    {"word newer than the version",
     KERNEL_OF(".version 7.0\n.target sm_80\n", "cvt.rn.satfinite.bf16.f32 %h1, %f1;"),
     "6:1: error: 'cvt.rn.satfinite.bf16.f32' needs PTX 8.1 (the module says 7.0)", true},
    {"wgmma-like: needs an a target",
     KERNEL_OF(".version 8.0\n.target sm_90\n", "setmaxnreg.inc.sync.aligned.u32 64;"),
     "6:1: error: 'setmaxnreg.inc.sync.aligned.u32' needs sm_90a (the target is sm_90)", true},
    {"scale of wgmma",
     KERNEL_OF(".version 8.0\n.target sm_90a\n",
               "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%r1, %r2}, %rd1, %rd2, 1, 2, 1, "
               "0, 0;"),
     "6:1: error: operand 5 of 'wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16' must be 1 or -1",
     true},
    {"transpose of wgmma",
     KERNEL_OF(".version 8.0\n.target sm_90a\n",
               "wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16 {%r1, %r2}, %rd1, %rd2, 1, 1, "
               "-1, 0, 2;"),
     "6:1: error: operand 8 of 'wgmma.mma_async.sync.aligned.m64n8k16.f16.f16.f16' must be from 0 "
     "to 1",
     true},
    {"no constant for scale-d of wgmma",
     KERNEL_OF(".version 8.0\n.target sm_90a\n",
               "wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8 {%r1, %r2, %r3, %r4}, %rd1, %rd2, "
               "-1;"),
     "6:1: error: operand 4 of 'wgmma.mma_async.sync.aligned.m64n8k32.s32.s8.s8' must be from 0 to "
     "1",
     true},
    {"field of a tensor map that is not there",
     KERNEL_OF(".version 8.3\n.target sm_90a\n",
               "tensormap.replace.tile.box_dim.global.b1024.b32 [%rd1], 5, %r1;"),
     "6:1: error: operand 2 of 'tensormap.replace.tile.box_dim.global.b1024.b32' must be from 0 to "
     "4",
     true},
    {"tensor map by the name of a parameter",
     ".version 8.0\n.target sm_90\n.address_size 64\n.entry f(.param .align 64 .b8 m[128])\n{\n"
     ".reg .b32 %r<4>;\ncp.async.bulk.prefetch.tensor.1d.L2.global [m, {%r1}];\nret;\n}\n",
     "7:1: error: 'm' is in .param, and 'cp.async.bulk.prefetch.tensor.1d.L2.global' takes a "
     "generic "
     "address: that of a register, from mov and cvta.param",
     true},
    {"tensor map at an offset",
     KERNEL_OF(".version 8.0\n.target sm_90\n",
               "cp.async.bulk.prefetch.tensor.1d.L2.global [%rd1+64, {%r1}];"),
     "6:1: error: operand 1 of 'cp.async.bulk.prefetch.tensor.1d.L2.global' must be a tensor map's "
     "address without an offset",
     true},
    {"part of a tensor map",
     KERNEL_OF(".version 8.3\n.target sm_90a\n",
               "fence.proxy.tensormap::generic.acquire.gpu [%rd1], 64;"),
     "6:1: error: operand 2 of 'fence.proxy.tensormap::generic.acquire.gpu' must be 128", true},
    {"half a line of the cache",
     KERNEL_OF(".version 8.0\n.target sm_90\n",
               "applypriority.global.L2::evict_normal [%rd1], 64;"),
     "6:1: error: operand 2 of 'applypriority.global.L2::evict_normal' must be 128", true},
    {"... that is thrown away",
     KERNEL_OF(".version 8.0\n.target sm_90\n", "discard.global.L2 [%rd1], 64;"),
     "6:1: error: operand 2 of 'discard.global.L2' must be 128", true},
    {"special register newer than the target", KERNEL("mov.u32 %r1, %cluster_ctarank;"),
     "7:1: error: '%cluster_ctarank' needs sm_90 (the target is sm_80)", true},
    {"float in an integer instruction", KERNEL("add.s32 %r1, %f1, 1;"),
     "7:1: error: 'add.s32' can't take '%f1', a .f32 register, for a .s32 operand", true},
    {"unsigned register in a float instruction", KERNEL("add.f32 %u1, %f1, %f2;"),
     "7:1: error: 'add.f32' can't take '%u1', a .u32 register, for a .f32 operand", true},
    {"size mismatch", KERNEL("add.u32 %r1, %rd1, 1;"),
     "7:1: error: 'add.u32' can't take '%rd1', a .b64 register, for a .u32 operand", true},
    {"predicate as a number", KERNEL("add.u32 %r1, %p1, 1;"),
     "7:1: error: 'add.u32' can't take '%p1', a .pred register, for a .u32 operand", true},
    {"a type behind one that fits", KERNEL("add.u32 %r1, %r2, %u3;\nadd.u32 %r1, %r2, %f3;"),
     "8:1: error: 'add.u32' can't take '%f3', a .f32 register, for a .u32 operand", true},
    {"an operand more behind one that fits", KERNEL("bar.sync %r1;\nbar.sync %r1, %p1;"),
     "8:1: error: 'bar.sync' can't take '%p1', a .pred register, for a .u32 operand", true},
    {"a negation behind what fits", KERNEL("add.u32 %r1, %r2, %r3;\nadd.u32 %r1, %r2, !%r3;"),
     "8:1: error: operand 3 of 'add.u32' must be a register without '!'", true},
    {"number as a predicate", KERNEL("selp.b32 %r1, %r2, %r3, %r4;"),
     "7:1: error: 'selp.b32' can't take '%r4', a .b32 register, for a .pred operand", true},
    {"integer for a float", KERNEL("add.f32 %f1, %f2, 1;"),
     "7:1: error: an integer can't stand for a .f32 operand of 'add.f32'", true},
    {"float for an integer", KERNEL("add.u32 %r1, %r2, 0f3F800000;"),
     "7:1: error: a float literal can't stand for a .u32 operand of 'add.u32'", true},
    {"double for 32 bits", KERNEL("mov.b32 %r1, 1.0;"),
     "7:1: error: a double literal can't stand for a .b32 operand of 'mov.b32'", true},
    {"constant as a destination", KERNEL("mov.u32 5, %r1;"),
     "7:1: error: operand 1 of 'mov.u32' must be a register", true},
    {"special register outside mov", KERNEL("add.u32 %r1, %tid.x, 1;"),
     "7:1: error: 'add.u32' can't read '%tid.x': move it into a register first", true},
    {"special register packed", KERNEL("cvt.pack.sat.u16.s32 %r1, %tid.x, %r2;"),
     "7:1: error: 'cvt.pack.sat.u16.s32' can't read '%tid.x': move it into a register first", true},
    {"wide register of an asynchronous store",
     KERNEL_OF(".version 8.1\n.target sm_90\n.address_size 64\n",
               "st.async.shared::cluster.mbarrier::complete_tx::bytes.b32 [%r1], %rd1, [%r2];"),
     "7:1: error: 'st.async.shared::cluster.mbarrier::complete_tx::bytes.b32' can't take '%rd1', a "
     ".b64 register, for a .b32 operand",
     true},
    {"special register of another size", KERNEL("mov.u64 %rd1, %tid.x;"),
     "7:1: error: '%tid.x' is .u32, not .u64", true},
    {"wrong vector length", KERNEL("ld.global.v4.f32 {%f1, %f2}, [%rd1];"),
     "7:1: error: operand 1 of 'ld.global.v4.f32' must be 4 elements in { }", true},
    {"vector without .v", KERNEL("ld.global.f32 {%f1, %f2}, [%rd1];"),
     "7:1: error: operand 1 of 'ld.global.f32' must be a register", true},
    {"mixed vector", KERNEL("st.global.v2.b8 [%rd1], {%h1, %r1};"),
     "7:1: error: operand 2 of 'st.global.v2.b8' must be elements of one size", true},
    {"float address", KERNEL("ld.global.f32 %f1, [%f2];"),
     "7:1: error: '%f2', a .f32 register, can't be an address", true},
    {"variable of another space", KERNEL(".shared .f32 s;\nld.global.f32 %f1, [s];"),
     "8:1: error: 's' is in .shared, but 'ld.global.f32' addresses .global", true},
    {"write to a parameter", KERNEL("st.param.u64 [a], %rd1;"),
     "7:1: error: 'a' is a parameter: it can't be written", true},
    {"constant address", KERNEL("ld.global.f32 %f1, [64];"),
     "7:1: error: operand 2 of 'ld.global.f32' must be an address in a register or variable "
     "(constants only address .local)",
     true},
    {"store to .const", KERNEL("ld.volatile.const.f32 %f1, [%rd1];"),
     "7:1: error: 'ld.volatile.const.f32': an ordered access is to .global or .shared memory",
     true},
    {"access too wide",
     KERNEL_OF(".version 8.8\n.target sm_100\n",
               "ld.shared.v4.b64 {%rd1, %rd2, %rd3, %rd4}, [%rd5];"),
     "6:1: error: 'ld.shared.v4.b64': more than 128 bits in one access only work on .global", true},
    {"access too wide for the target", KERNEL("ld.global.v4.b64 {%rd1, %rd2, %rd3, %rd4}, [%rd5];"),
     "7:1: error: 'ld.global.v4.b64' needs sm_100 (the target is sm_80)", true},
    {"cache operator and eviction priority",
     KERNEL("ld.global.cg.L1::no_allocate.f32 %f1, [%rd1];"),
     "7:1: error: 'ld.global.cg.L1::no_allocate.f32': an eviction priority and a cache operator "
     "exclude each other",
     true},
    {"barrier out of range", KERNEL("bar.sync 16;"),
     "7:1: error: operand 1 of 'bar.sync' must be from 0 to 15", true},
    {"barrier of part of a warp", KERNEL("bar.sync 0, 33;"),
     "7:1: error: operand 2 of 'bar.sync' must be a multiple of 32 from 32 to 1024", true},
    {"pack that does not fill", KERNEL("mov.b64 %rd1, {%r1, %r2, %r3, %r4};"),
     "7:1: error: 'mov.b64' can't take '%r1', a .b32 register, for a .b16 operand", true},
    {"group to group", KERNEL("mov.b64 {%r1, %r2}, {%r3, %r4};"),
     "7:1: error: 'mov.b64' can't move a group to a group", true},
    {".ftz without f32", KERNEL("cvt.rn.ftz.f64.u32 %fd1, %r1;"),
     "7:1: error: 'cvt.rn.ftz.f64.u32': .ftz is for conversions to or from .f32", true},
    {"two predicates for one half", KERNEL("setp.lt.f16 %p1|%p2, %h1, %h2;"),
     "7:1: error: 'setp.lt.f16': a second predicate is for pairs of halves", true},
    {".sat where it is not needed", KERNEL("cvt.sat.u64.u32 %rd1, %r1;"),
     "7:1: error: 'cvt.sat.u64.u32': .sat where every value fits", true},
    {"negated register", KERNEL("add.u32 %r1, !%r2, 1;"),
     "7:1: error: operand 2 of 'add.u32' must be a register without '!'", true},
    {"call of nothing", KERNEL("call nowhere, (%r1);"),
     "7:1: error: function 'nowhere' is not declared before it is called", true},
    {"call of a kernel", KERNEL("call k, (%rd1);"),
     "7:1: error: 'k' is a kernel: it can't be called", true},
    {"call with too few arguments", KERNEL_OF(HEAD ".func f(.reg .b32 x) { ret; }\n", "call f;"),
     "8:1: error: 'f' has 1 parameter, the call 0", true},
    {"call with an argument of another size",
     KERNEL_OF(HEAD ".func f(.param .b32 x) { ret; }\n", ".param .b64 y;\ncall f, (y);"),
     "9:1: error: 'y' has 8 bytes, the parameter of 'f' 4", true},
    {"indirect call without a prototype", KERNEL("call %rd1, (%r1);"),
     "7:1: error: an indirect call needs the label of a .callprototype", true},
    {"branch to a list", KERNEL("L: .branchtargets M; M: bra L;"),
     "7:25: error: 'L' is not a label of code", true},
    {"indexed branch without a list", KERNEL("L: brx.idx %r1, L;"),
     "7:4: error: 'L' is not the label of a .branchtargets list", true},
    {"too much shared memory", HEAD ".entry k() { .shared .b8 s[50000]; ret; }\n",
     "4:8: error: 'k' has 50000 bytes of static shared memory, more than 49152", true},
    {"too many parameters", ".version 7.0\n.target sm_80\n.entry k(.param .b8 x[5000]) { ret; }\n",
     "3:8: error: 'k' has 5000 bytes of parameters, more than 4352", true},
    {"too many parameters for PTX 8.1",
     ".version 8.1\n.target sm_80\n.entry k(.param .b8 x[40000]) { ret; }\n",
     "3:8: error: 'k' has 40000 bytes of parameters, more than 32764", true},
    {"initial value of shared memory", HEAD ".shared .u32 x = 5;\n",
     "4:14: error: 'x': only .global and .const variables have initial values", true},
    {"array without a size", HEAD ".global .u32 x[];\n",
     "4:14: error: 'x': an array without a size is .extern", true},
    {"variable of predicates", HEAD ".global .pred x;\n",
     "4:15: error: 'x': no variable has the type .pred", true},
    {"runs off the end", HEAD ".entry k()\n{\n.reg .b32 r;\nmov.u32 r, 1;\n}\n",
     "7:1: warning: 'k' ends without 'ret'", false},
};

static struct arena *arena;

/* The first report on the text as "line:column: level: message", or "" when all is well. */
static const char *judge(const char *text, size_t len, bool *good)
{
    struct diags *d = diags_new(arena);
    struct ptx_module *m = ptx_parse(arena, source_new(arena, "bad", text, len), d);
    *good = m && ptx_validate(m, d);
    if (d->list.n == 0)
        return "";
    static const char *const levels[] = {"note", "warning", "error"};
    struct line_col at = span_line_col(d->list.v[0].span);
    return arena_printf(arena, "%zu:%zu: %s: %s", at.line, at.col, levels[d->list.v[0].level],
                        d->list.v[0].text);
}

static bool ptxas_refuses(const char *text, const char *name)
{
    const char *target = strstr(text, "sm_");
    char line[512];
    FILE *p =
        ptxas_run(text, strlen(text), target ? (unsigned)strtoul(target + 3, NULL, 10) : 80, 0);
    if (!p)
        return false;
    while (fgets(line, sizeof line, p))
        ;
    bool refused = pclose(p) != 0;
    if (!refused)
        tap_note("ptxas takes: %s", name);
    return refused;
}

static void check_cases(void)
{
    size_t n = sizeof cases / sizeof *cases, taken = 0;
    for (size_t i = 0; i < n; i++) {
        bool good, warned = strstr(cases[i].want, " warning: ");
        eq_str(judge(cases[i].text, strlen(cases[i].text), &good), cases[i].want, "%s",
               cases[i].name);
        if (good != warned)
            ok(false, "%s: taken or refused", cases[i].name);
    }
    if (!ptxas_path()) {
        tap_skip("the same texts before ptxas", "no ptxas here");
        return;
    }
    for (size_t i = 0; i < n; i++)
        taken += ptxas_refuses(cases[i].text, cases[i].name) != cases[i].ptxas_too;
    eq_int(taken, 0, "ptxas refuses and takes the same %zu texts", n);
}

/* Text that goes on and on ends in a report, soon. */
static void check_repeated(const char *name, const char *head, const char *again, size_t times,
                           const char *want)
{
    struct buf b = buf_in(arena);
    bool good;
    buf_puts(&b, head);
    for (size_t i = 0; i < times; i++)
        buf_puts(&b, again);
    const char *got = judge(buf_text(&b), b.len, &good);
    ok(!good && strstr(got, want), "%s: %s", name, got);
}

static void check_long(void)
{
    check_repeated("modifiers", KERNEL_OF(HEAD, "") ".func f() { add", ".u32", 1000000,
                   "that many modifiers");
    check_repeated("operands", HEAD ".func f() { .reg .u32 r; add.u32 r", ",r", 1000000,
                   "that many operands");
    check_repeated("elements", HEAD ".func f() { .reg .u32 r; mov.b32 {r", ",r", 1000000,
                   "expected fewer elements");
    check_repeated("parentheses", HEAD ".func f() { .reg .u32 r; mov.u32 r, ", "(", 1000000,
                   "nested too deep");
    check_repeated("signs", HEAD ".func f() { .reg .u32 r; mov.u32 r, ", "-", 1000000,
                   "nested too deep");
    check_repeated("choices", HEAD ".func f() { .reg .u32 r; mov.u32 r, ", "1?", 1000000,
                   "nested too deep");
    check_repeated("blocks", HEAD ".func f() ", "{", 1000000, "blocks within each other");
    check_repeated("closing braces", HEAD, "}", 1000000, "expected a directive");
    check_repeated("registers", HEAD ".func f() { ", ".reg .b32 r<1000000>; ", 1000,
                   "registers in a module");
    check_repeated("dimensions", HEAD ".global .b8 x", "[1]", 1000000, "too large");
    check_repeated("address", HEAD ".func f() { .reg .u64 r; ld.u8 r, ", "[{", 1000000, "expected");
    check_repeated("errors", HEAD ".func f() { ", "add.u32; ", 1000000, "takes 3 operands");
    check_repeated("a name", HEAD ".func ", "a1", 1000000, "expected");
    check_repeated("a register", HEAD ".func f() { .reg .b32 r<9>; mov.u32 r", "1", 1000000,
                   "'r1111");
    check_repeated("an unknown name", HEAD ".func f() { ", "x", 1000000, "");
    check_repeated("an unknown word", HEAD ".func f() { add.", "x", 1000000, "unknown instruction");
    check_repeated("digits", HEAD ".func f() { .reg .u32 r; mov.u32 r, ", "9", 1000000, "64 bits");
    check_repeated("comments", HEAD ".func f() { ", "//\n", 1000000, "not closed");
    check_repeated("pending branches", HEAD ".func f() { {{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{{ ",
                   "bra x; ", 100000, "not closed");
}

static void check_bytes(void)
{
    static const char zeros[] = HEAD ".entry k() { \0\0 ret; }";
    bool good;
    const char *got = judge(zeros, sizeof zeros - 1, &good);
    ok(!good && strstr(got, "NUL byte"), "NUL bytes: %s", got);
    static const char trailing[] = HEAD ".entry k() { ret; }\0\0";
    judge(trailing, sizeof trailing - 1, &good);
    ok(good, "NUL bytes at the end are no part of the text");
    /* Every byte value in every kind of place. */
    static const char *const around[][2] = {
        {"", ""},
        {HEAD, ""},
        {HEAD ".func f() { ", " }"},
        {HEAD ".func f() { .reg .u32 r; add.u32 r, r, ", "; ret; }"},
        {HEAD ".func f() { .reg .u32 r; add.u", " r, r, r; ret; }"}};
    unsigned silent = 0;
    for (size_t k = 0; k < sizeof around / sizeof *around; k++) {
        for (int c = 0; c < 256; c++) {
            char text[256];
            int n = snprintf(text, sizeof text, "%s?%s", around[k][0], around[k][1]);
            text[strlen(around[k][0])] = (char)c;
            silent += !*judge(text, (size_t)n, &good) && !good;
        }
    }
    eq_int(silent, 0, "every byte in every place: refused with a report, or taken");
}

int main(void)
{
    arena = arena_new();
    check_cases();
    check_long();
    check_bytes();
    ptxas_clean();
    arena_free(arena);
    return tap_done();
}
