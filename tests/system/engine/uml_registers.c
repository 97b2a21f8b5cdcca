/* Preloaded into Debian 12's User-mode Linux, so that it runs on processors with more registers
 * than it knows. It keeps 2,696 bytes of a program's extended state, enough for AVX-512; Linux
 * takes the whole state or none (ptrace(2), PTRACE_SETREGSET: EFAULT), which with AMX is 11 KiB,
 * and the machine ended with "ptrace set fp regs failed" as its first program began. What User-mode
 * Linux does not know is in no program's use there, as nobody has asked for it (arch_prctl(2)):
 * so that part is zero, and is added here. */
#include <dlfcn.h>
#include <elf.h>
#include <stdalign.h>
#include <stdarg.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/types.h>
#include <sys/uio.h>

enum { STATE_MAX = 1 << 16 }; /* bytes; the largest that a processor of today has is 11 KiB */

typedef long ptrace_function(enum __ptrace_request request, ...);

/* Not static: it stands in the place of libc's. User-mode Linux has one thread that calls it. */
long ptrace(enum __ptrace_request request, ...);

long ptrace(enum __ptrace_request request, ...)
{
    static ptrace_function *next;
    static alignas(64) unsigned char state[STATE_MAX];
    if (!next)
        *(void **)&next = dlsym(RTLD_NEXT, "ptrace"); /* as dlopen(3) writes it */
    va_list list;
    va_start(list, request);
    const pid_t pid = va_arg(list, pid_t);
    void *address = va_arg(list, void *);
    void *data = va_arg(list, void *);
    va_end(list);
    if (request != PTRACE_SETREGSET || (long)address != NT_X86_XSTATE)
        return next(request, pid, address, data);
    const struct iovec *given = data;
    struct iovec whole = {state, sizeof state};
    if (next(PTRACE_GETREGSET, pid, address, &whole) != 0 || whole.iov_len <= given->iov_len)
        return next(request, pid, address, data);
    memcpy(state, given->iov_base, given->iov_len);
    memset(state + given->iov_len, 0, whole.iov_len - given->iov_len);
    return next(request, pid, address, &whole);
}
