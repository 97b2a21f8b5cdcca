/* access.h — where the API server of a cluster is, and as whom it is asked.
 *
 * Pure but for the reading of the files that a kubeconfig names. Of the kubeconfig are read: its
 * contexts, clusters and users with server, certificate-authority(-data), tls-server-name,
 * insecure-skip-tls-verify, proxy-url, token, tokenFile, client-certificate(-data) and
 * client-key(-data). What it asks for beyond that (exec, auth-provider, username, impersonation) is
 * an error that names it: to be asked without it would be to be asked as somebody else.
 *
 * A token that comes from a file is read again when it may have been renewed: Kubernetes renews
 * those of service accounts in place.
 */
#ifndef ENGINE_KUBERNETES_ACCESS_H
#define ENGINE_KUBERNETES_ACCESS_H
#include "base/text.h"
#include <stdbool.h>

struct arena;
struct buf;
struct err;

/* What a pod of the cluster has. */
#define ACCESS_POD_FOLDER "/var/run/secrets/kubernetes.io/serviceaccount"

enum { ACCESS_FILE_MAX = 1 << 20, ACCESS_TOKEN_MAX = 64 << 10 };

struct kube_access {
    const char *server;           /* "https://10.0.0.1:6443", without a slash at the end */
    struct text ca;               /* PEM; empty: the system's */
    struct text certificate, key; /* PEM; empty: none */
    const char *token;            /* "" none, or in the file */
    const char *token_path;       /* "" none */
    const char *server_name;      /* by which its certificate is checked; "": as in `server` */
    const char *proxy;            /* "" none */
    const char *space;            /* the context's namespace; "" none */
    bool is_unchecked;            /* the server's certificate is taken as it is */
};

/* From a kubeconfig; its current context when `context` is "". Everything lives in `arena`.
 * ERR_NOT_FOUND, ERR_IO: a file; ERR_INVALID: what is wrong in it; ERR_UNSUPPORTED. */
int kube_access_of_file(const char *path, const char *context, struct arena *arena,
                        struct kube_access *access, struct err *err);

/* As a pod of the cluster: `host` and `port` are KUBERNETES_SERVICE_HOST and _PORT, the rest is
 * read in `folder`. ERR_UNAVAILABLE: this is no pod. */
int kube_access_of_pod(const char *host, const char *port, const char *folder, struct arena *arena,
                       struct kube_access *access, struct err *err);

/* Append "Authorization: Bearer TOKEN", with the token as its file has it now; nothing where there
 * is none. ERR_*: the file cannot be read. To be wiped. */
int kube_access_header(const struct kube_access *access, struct buf *out);

#endif
