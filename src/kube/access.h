/* access.h — where the API server of a cluster is, and as whom it is asked.
 *
 * Pure but for the reading of the files that a kubeconfig names. Of the kubeconfig are read: its
 * contexts, clusters and users with server, certificate-authority(-data), tls-server-name,
 * insecure-skip-tls-verify, proxy-url, token, tokenFile, client-certificate(-data),
 * client-key(-data) and exec. What it asks for beyond that (auth-provider, username, impersonation)
 * is an error that names it: to be asked without it would be to be asked as somebody else.
 *
 * What changes while it is used (tokens and certificates in files, whom to trust, what an exec
 * plugin says) is login.h's.
 */
#ifndef KUBE_ACCESS_H
#define KUBE_ACCESS_H
#include "base/text.h"
#include <stdbool.h>

struct arena;
struct err;

/* What a pod of the cluster has. */
#define ACCESS_POD_FOLDER "/var/run/secrets/kubernetes.io/serviceaccount"

#define ACCESS_PLUGIN_V1      "client.authentication.k8s.io/v1"
#define ACCESS_PLUGIN_V1BETA1 "client.authentication.k8s.io/v1beta1"

enum { ACCESS_FILE_MAX = 1 << 20, ACCESS_ITEMS_MAX = 256, ACCESS_FILES_MAX = 16 };

/* A command that says who asks: `exec` of a kubeconfig's user (client.authentication.k8s.io). */
struct kube_plugin {
    const char *command;          /* an absolute path, or a name that is found in PATH */
    const char *const *arguments; /* ends with NULL; the first is `command` */
    const char *const *env;       /* "NAME=VALUE" beyond ours; ends with NULL */
    const char *version;          /* client.authentication.k8s.io/v1 or …/v1beta1 */
    const char *hint;             /* how to install it, for people; "" none */
    const char *cluster_config;   /* JSON that the kubeconfig has for it; "" none */
    bool wants_cluster;           /* is told which cluster it is for */
    bool needs_terminal, can_use_terminal;
};

struct kube_access {
    const char *server;           /* "https://10.0.0.1:6443", without a slash at the end */
    struct text ca;               /* PEM, as it was read first; empty: the system's */
    const char *ca_path;          /* where it stands; "": not in a file of its own */
    struct text certificate, key; /* PEM; empty: none, or the plugin says it */
    const char *certificate_path, *key_path; /* "": not from files */
    const char *token;                       /* "" none, or in the file */
    const char *token_path;                  /* "" none */
    const struct kube_plugin *plugin;        /* NULL: none */
    const char *path;                        /* of the kubeconfig with the user; "" none */
    const char *server_name; /* by which its certificate is checked; "": as in `server` */
    const char *proxy;       /* "" none */
    const char *space;       /* the context's namespace; "" none */
    bool is_unchecked;       /* the server's certificate is taken as it is */
};

/* From a kubeconfig; its current context when `context` is "". Everything lives in `arena`.
 * ERR_NOT_FOUND, ERR_IO: a file; ERR_INVALID: what is wrong in it; ERR_UNSUPPORTED. */
int kube_access_of_file(const char *path, const char *context, struct arena *arena,
                        struct kube_access *access, struct err *err);

/* The same of several files with ':' between them, as KUBECONFIG names them: together they are one
 * kubeconfig, in which the first file that has a name, or a current context, counts. Those that are
 * not there are passed over. ERR_NOT_FOUND: none is there; ERR_TOO_BIG: more than ACCESS_FILES_MAX.
 */
int kube_access_of_files(const char *paths, const char *context, struct arena *arena,
                         struct kube_access *access, struct err *err);

/* As a pod of the cluster: `host` and `port` are KUBERNETES_SERVICE_HOST and _PORT, the rest is
 * read in `folder`. ERR_UNAVAILABLE: this is no pod. */
int kube_access_of_pod(const char *host, const char *port, const char *folder, struct arena *arena,
                       struct kube_access *access, struct err *err);

/* The whole file. ERR_NOT_FOUND, ERR_TOO_BIG, ERR_IO. */
int kube_access_part(const char *path, struct arena *arena, struct text *content, struct err *err);

#endif
