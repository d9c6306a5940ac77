/* The operations of atom and red, in sim_op.round. Private to lib/sim. */
#ifndef KAIO_SIM_ATOM_H
#define KAIO_SIM_ATOM_H

enum sim_atom {
    SIM_ATOM_ADD,
    SIM_ATOM_MIN_U,
    SIM_ATOM_MAX_U,
    SIM_ATOM_MIN_S,
    SIM_ATOM_MAX_S,
    SIM_ATOM_AND,
    SIM_ATOM_OR,
    SIM_ATOM_XOR,
    SIM_ATOM_EXCH,
    SIM_ATOM_CAS,
    SIM_ATOM_INC,
    SIM_ATOM_DEC,
    SIM_ATOM_ADD_F,
    /* of one half, or of both */
    SIM_ATOM_ADD_F16,
    SIM_ATOM_MIN_F16,
    SIM_ATOM_MAX_F16,
    SIM_ATOM_ADD_BF16,
    SIM_ATOM_MIN_BF16,
    SIM_ATOM_MAX_BF16,
};

#endif
