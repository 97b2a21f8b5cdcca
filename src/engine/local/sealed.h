/* sealed.h — a copy of a program in memory that nothing can write to any more.
 *
 * Edge. crun does not trust its own file while a container's process still runs it, because that
 * process could write to it through /proc: unless it finds itself in memory with all seals, it
 * makes itself a read-only file and executes that. Executed from here it need not, which saves
 * every start one of its two executions.
 */
#ifndef ENGINE_LOCAL_SEALED_H
#define ENGINE_LOCAL_SEALED_H

struct err;

enum { SEALED_BYTES_MAX = 64 << 20 };

/* Copy `program` and make `path` a link by which it can be executed: as long as the returned
 * descriptor is open, which is the caller's, and so is the link. The copy has answered `--version`.
 * ERR_UNSUPPORTED: not on this machine (SELinux labels processes by their program's file; programs
 * in memory are forbidden); ERR_TOO_BIG, ERR_IO. Then there is no link. */
int sealed_make(const char *program, const char *path, struct err *err);

#endif
