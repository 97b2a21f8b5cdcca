/* oidc_thread.h — the thread that talks to the provider of OpenID Connect, one login after the
 * other.
 *
 * The provider may take its time: the threads that serve requests never wait for it. At most
 * OIDC_WAITING_MAX logins wait.
 */
#ifndef API_OIDC_THREAD_H
#define API_OIDC_THREAD_H
#include "signon/oidc.h"
#include <stdbool.h>

struct err;
struct oidc_thread;

enum { OIDC_WAITING_MAX = 64 };

/* The caller's until `done` is called, once, by the thread. */
struct oidc_task {
    /* Not called when the server ends first. */
    void (*run)(struct oidc_task *task, struct oidc *oidc);
    void (*done)(struct oidc_task *task, bool is_run);
    struct oidc_task *next; /* the thread's */
};

/* Errors of oidc_new; config->is_ending is set here. */
int oidc_thread_start(const struct oidc_config *config, struct oidc_thread **thread,
                      struct err *err);
/* What is under way is given up, what waits is not run; later tasks are refused. */
void oidc_thread_stop(struct oidc_thread *thread);
void oidc_thread_free(struct oidc_thread *thread); /* NULL is fine */

/* ERR_BUSY: too many wait; ERR_UNAVAILABLE: stopped. Then `done` is not called. */
int oidc_thread_give(struct oidc_thread *thread, struct oidc_task *task, struct err *err);

#endif
