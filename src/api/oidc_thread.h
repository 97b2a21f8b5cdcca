/* oidc_thread.h — the thread that talks to the provider of OpenID Connect, one login after the
 * other.
 *
 * The provider may take its time: the threads that serve requests never wait for it. All who log in
 * here are strangers, whose networks take turns: at most OIDC_STRANGERS_MAX logins wait, and from
 * OIDC_WAITING_MAX on only the first one of each network is taken.
 */
#ifndef API_OIDC_THREAD_H
#define API_OIDC_THREAD_H
#include "signon/oidc.h"
#include "sys/worker.h"

struct err;
struct oidc_thread;

enum { OIDC_WAITING_MAX = 32, OIDC_STRANGERS_MAX = 64 };

/* Errors of oidc_new and worker_start; config->is_ending is set here. */
int oidc_thread_start(const struct oidc_config *config, struct oidc_thread **thread,
                      struct err *err);
/* What is under way is given up, what waits is not run; later tasks are refused. */
void oidc_thread_stop(struct oidc_thread *thread);
void oidc_thread_free(struct oidc_thread *thread); /* NULL is fine */

/* As worker_give, of a task of a stranger's; the context of `run` is a struct oidc. */
int oidc_thread_give(struct oidc_thread *thread, struct worker_task *task, struct err *err);

#endif
