/* machine.h — checks what this machine can give to the walls between tasks, and what it cannot.
 *
 * Edge. Most is tried and not read: mounts are made in a mount namespace of a process that ends at
 * once, nothing of them stays. What can only be tried by root is UNKNOWN to others.
 */
#ifndef SYS_MACHINE_H
#define SYS_MACHINE_H
#include <stddef.h>

enum machine_state {
    MACHINE_GOOD,
    MACHINE_LESS,    /* tasks run, with one wall less or at a higher price */
    MACHINE_MISSING, /* no task runs */
    MACHINE_UNKNOWN, /* cannot be told by this user */
};

struct machine_finding {
    const char *name; /* one word or two, the same on every machine */
    enum machine_state state;
    char found[120];
    const char *meaning; /* of what is not good: a sentence; "" when it is */
};

enum { MACHINE_FINDINGS_MAX = 32 };

extern const char *const machine_state_words[]; /* "good", "less", "missing", "unknown" */

/* What was found, in an order for people. `directory` is the server's for data, or the nearest one
 * above it that is there. Returns how many. */
size_t machine_check(const char *directory, struct machine_finding findings[MACHINE_FINDINGS_MAX]);

/* Can what is below the folder be shown with other ids? ERR_UNSUPPORTED, ERR_IO: and why not. Only
 * root can try. */
struct err;
int machine_ids_try(const char *path, struct err *err);

/* Can jobs have networks of their own here? ERR_UNSUPPORTED: and why not. Nothing is left of it. */
int machine_networks_try(struct err *err);

/* "6.1.0-21-amd64" is 601; what is no version is 0. */
int machine_kernel_number(const char *release);

#endif
