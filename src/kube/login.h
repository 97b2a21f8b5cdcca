/* login.h — what an API server is shown so that it knows who asks, as it is now.
 *
 * Edge. A token or a certificate in a file is read again after LOGIN_READ_MS and after a refusal:
 * Kubernetes renews those of service accounts in place. So are the certificates of whom to trust,
 * and when the server's is not trusted. An exec plugin runs on a thread of its own,
 * so that nobody waits for it who need not; what it says is kept until it expires or is refused.
 * The next one is asked for while the old one is still good, and as long as it is it is used.
 *
 *   state           | asked for                       | then
 *   none            | being asked for (ERR_BUSY)      | the plugin runs
 *   runs, none yet  | being asked for (ERR_BUSY)      |
 *   has             | the credential                  | shortly before it expires the plugin runs
 *   failed          | why (ERR_UNAVAILABLE), and when | after a pause, 1 s … 30 s, it runs again
 */
#ifndef KUBE_LOGIN_H
#define KUBE_LOGIN_H
#include "kube/plugin.h"

struct kube_access;
struct kube_login;
struct err;

enum { LOGIN_READ_MS = 60 * 1000, LOGIN_TOKEN_MAX = 64 << 10, LOGIN_PAUSE_MAX_MS = 30 * 1000 };

/* `access` is borrowed. `changed` is called, by any thread, when what was being asked for is there
 * or has failed; NULL: nobody is told. ERR_UNAVAILABLE: no thread. */
int kube_login_new(const struct kube_access *access, bool has_terminal,
                   void (*changed)(void *context), void *context, struct kube_login **login,
                   struct err *err);
/* A plugin that runs is killed. NULL is fine. */
void kube_login_free(struct kube_login *login);

/* Any thread. Copies the credential; to be released. ERR_BUSY: it is being asked for; ERR_*: there
 * is none, and why; *again_ms: in so many ms it is worth to ask again. */
int kube_login_take(struct kube_login *login, struct kube_credential *credential,
                    uint32_t *again_ms, struct err *err);
/* The same, but waits while the plugin runs. */
int kube_login_wait(struct kube_login *login, struct kube_credential *credential, struct err *err);

/* The server has answered 401 to the credential of this number. */
void kube_login_refused(struct kube_login *login, uint64_t number);
/* The server's certificate is vouched for by nobody whom the last credential names. */
void kube_login_distrusted(struct kube_login *login);

#endif
