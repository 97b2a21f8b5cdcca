/* child.h — what a child may do that still runs in its parent's memory.
 *
 * For the functions that __clone() starts with CLONE_VM and CLONE_VFORK: the parent waits until the
 * child executes a program. Only system calls are allowed, because the heap and the locks are the
 * parent's, and so would be whatever a sanitizer's own version of a libc function notes down.
 */
#ifndef SYS_CHILD_H
#define SYS_CHILD_H
#include <signal.h>
#include <sys/syscall.h>
#include <unistd.h>

#define CHILD_ONLY __attribute__((no_sanitize("address", "thread", "undefined")))

/* glibc's own name of clone(): that of the thread sanitizer assumes that memory is copied */
int __clone(int (*run)(void *), void *stack, int flags, void *context, ...);

enum { CHILD_STACK_BYTES = 64 << 10 };

struct kernel_sigaction { /* rt_sigaction(2); all zero: the default action, nothing masked */
    void *handler;
    unsigned long flags;
    void *restorer;
    unsigned long mask;
};

/* Every signal has its default action and none is blocked, as a program expects it. */
CHILD_ONLY static inline void child_signals_reset(void)
{
    struct kernel_sigaction action = {0};
    unsigned long none = 0;
    for (int signal = 1; signal <= 64; signal++)
        syscall(SYS_rt_sigaction, signal, &action, NULL, sizeof action.mask);
    syscall(SYS_rt_sigprocmask, SIG_SETMASK, &none, NULL, sizeof none);
}

#endif
