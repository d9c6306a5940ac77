/* kaio: GPU kernels from the command line. The public C interface. */
#ifndef KAIO_H
#define KAIO_H

#ifdef __cplusplus
extern "C" {
#endif

/* The version of the library at run time: "0.1.0". */
const char *kaio_version(void);

#ifdef __cplusplus
}
#endif
#endif
