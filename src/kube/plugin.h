/* plugin.h — asks an exec plugin of a kubeconfig who we are: client.authentication.k8s.io.
 *
 * Edge. The command gets our environment, the variables of the kubeconfig and KUBERNETES_EXEC_INFO;
 * it answers with an ExecCredential on its output. It may take PLUGIN_MS, and is killed then.
 */
#ifndef KUBE_PLUGIN_H
#define KUBE_PLUGIN_H
#include "base/buf.h"
#include <stdbool.h>
#include <stdint.h>

struct err;
struct kube_access;

enum { PLUGIN_MS = 60 * 1000 };

struct kube_credential {
    uint64_t number;        /* another credential has another one */
    struct buf header;      /* "Authorization: Bearer TOKEN"; empty: no token */
    struct buf certificate; /* PEM; empty: none */
    struct buf key;         /* its key */
    struct buf ca;          /* whom to trust since its file has changed; empty: as access says */
    int64_t expires_ms;     /* Unix time; 0: it does not say */
};

/* Wipes it. */
void kube_credential_release(struct kube_credential *credential);
#define cleanup_credential __attribute__((cleanup(kube_credential_release)))

/* Runs it and waits. With a terminal it gets our standard input and writes to our standard error.
 * `stop`: a descriptor; once it is readable the command is killed (0: none). ERR_NOT_FOUND: there
 * is no such command; ERR_UNAVAILABLE: it failed; ERR_INVALID: what it says is no credential. The
 * text says which command, and how. */
int kube_plugin_run(const struct kube_access *access, bool has_terminal, int stop,
                    struct kube_credential *credential, struct err *err);

/* Without I/O: what it is told about (KUBERNETES_EXEC_INFO), and what it says. */
void kube_plugin_info(const struct kube_access *access, bool has_terminal, struct buf *out);
int kube_plugin_read(const struct kube_access *access, struct text answer,
                     struct kube_credential *credential, struct err *err);

#endif
