/* What mma.sync computes and where its operands lie. Private to lib/sim.
 *
 * A warp's registers hold fragments of three matrices (PTX ISA, matrix fragments of mma). Register
 * r of A in lane 4 g + t has 32 bits (of f64: 64) of row g + 8 (r mod M/8): as many elements as
 * fit, from column (4 (r / (M/8)) + t) E on, E elements a register. B is the same with columns of B
 * for rows of A. Of C and D, 32 bits an element, register 2 h + p of lane 4 g + t is row g + 8 h,
 * column 2 t + p; elements of 16 bits lie two to a register, the lower column in the lower half. So
 * a slot of the register file is eight rows of 16 bytes (of f64: 32 bytes). Only m8n8k4 of f16 has
 * another order (exec_mma.c).
 *
 * Tensor cores add up floats in their own way: products are exact and not normalised; they and C
 * are aligned to the largest exponent among those that are not zero, and each is cut off toward
 * zero at so many bits behind that one's point; their sum is exact, and rounded once: to f32 toward
 * zero, to f16 to nearest even; a zero is +0, a NaN the canonical one. Terms are summed in one go
 * for so many steps of K, and the result is the C of the next ones. That was published for MMA-Sim
 * (arXiv 2511.10909); on an H100 all forms give these bits (tests/unit/sim_mma.c), where
 * - fp8 becomes f16: two such products one after the other, of the lower and the upper two of every
 *   four elements along K, are added to zero, and C to that as scalars are;
 * - m8n8k4 of f16 is plain arithmetic in f32: with f32 sums C + fma(a3, b3, fma(a2, b2, fma(a1, b1,
 *   fma(a0, b0, 0)))), with f16 sums (C + fma(a1, b1, a0 b0)) + fma(a3, b3, a2 b2);
 * - f64 is a chain of fused multiply-adds in the order of K.
 */
#ifndef KAIO_SIM_MATRIX_H
#define KAIO_SIM_MATRIX_H

#include "sim/sim.h"

enum sim_element {
    SIM_E_F16,
    SIM_E_BF16,
    SIM_E_TF32,
    SIM_E_E4M3,
    SIM_E_E5M2,
    SIM_E_U8,
    SIM_E_S8,
    SIM_E_U4,
    SIM_E_S4,
    SIM_E_B1,
    SIM_E_F64,
};

/* In sim_op.imm of the MMA records, as a pointer. */
struct sim_mma {
    uint8_t a_type, b_type; /* enum sim_element */
    uint8_t m, n;
    uint16_t k;
    uint8_t na, nb, nc; /* registers of A, B, and of C and D */
    bool half;          /* C and D are f16 */
    bool saturate;      /* .satfinite */
    bool and;           /* b1: .and, else .xor */
    bool quads;         /* m8n8k4 of f16: four problems, one for every two groups of four lanes */
    bool a_col, b_row;  /* ... and its layouts */
    bool emulated;      /* ... as plain arithmetic */
    bool as_f16;        /* fp8 is converted to f16 first */
    uint8_t bits;       /* fraction bits that are kept */
    uint8_t out_bits;   /* ... of the result; f32 has 23 */
    uint8_t round;      /* f64: enum sim_round */
    uint8_t step;       /* of K, summed in one go */
    uint32_t d[8], a[8], b[4], c[8]; /* slots */
};

static inline const struct sim_mma *sim_mma_of(const struct sim_op *op)
{
    return (const struct sim_mma *)(uintptr_t)op->imm;
}

/* ldmatrix and stmatrix: slots d, b, c, e; the address is a + imm; sim_op.round: */
enum sim_matrix_round { SIM_MATRIX_COUNT = 7, SIM_MATRIX_TRANS = 8 };

#endif
