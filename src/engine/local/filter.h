/* filter.h — shortens a compiled seccomp program.
 *
 * Pure. libseccomp compares with every system call that is named; neighbours that end alike need
 * one comparison. The program is read by the runtime, checked and compiled by the kernel at every
 * start of a task, so its length is paid for each time. Only the kinds of instruction that
 * libseccomp uses and of which the kernel can tell beforehand that a call is allowed in any case.
 */
#ifndef ENGINE_LOCAL_FILTER_H
#define ENGINE_LOCAL_FILTER_H
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { FILTER_MAX = 4096 }; /* instructions: BPF_MAXINSNS */

/* A program that answers every call as `program` does, into `out` (room for FILTER_MAX). 0: of a
 * form that is not understood, or not shorter. */
size_t filter_shorten(const struct sock_filter *program, size_t count, struct sock_filter *out);

/* What a program answers. False: it is not one of ours (unknown instruction, ran out of it). */
bool filter_run(const struct sock_filter *program, size_t count, const struct seccomp_data *data,
                uint32_t *answer);

#endif
