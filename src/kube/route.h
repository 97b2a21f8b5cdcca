/* route.h — how requests reach the API server of a cluster: its address, TLS, and proxies.
 *
 * Edge. A proxy is the kubeconfig's proxy-url, or that of the environment (HTTPS_PROXY, HTTP_PROXY
 * in small letters, ALL_PROXY, NO_PROXY); one of the environment is not used towards this machine
 * itself. HTTP/1.1, because a stream that stalls must hold up nothing else.
 */
#ifndef KUBE_ROUTE_H
#define KUBE_ROUTE_H
#include <curl/curl.h>

struct err;
struct kube_access;
struct kube_credential;

enum { ROUTE_CONNECT_MS = 10 * 1000 };

struct kube_route {
    const struct kube_access *access;
    char *base;                    /* what a path is put behind */
    struct curl_slist *connect_to; /* NULL: the host of `base` */
    const char *proxy;             /* NULL: the environment's */
};

/* `access` is borrowed. ERR_INVALID: its addresses are none. */
int kube_route_init(struct kube_route *route, const struct kube_access *access, struct err *err);
void kube_route_release(struct kube_route *route);

/* A handle that is set up to reach `path` as whom `credential` says, but for the token, which is a
 * header of the request. The caller cleans it up; what it needs of the credential it copies. Any
 * thread. */
CURL *kube_route_easy(const struct kube_route *route, const struct kube_credential *credential,
                      const char *path);

/* Of a transfer that is under way and mostly quiet: what came has been taken, and its TLS buffers
 * (16 KiB) go back until more does. OpenSSL does not do so by itself while libcurl reads once for
 * each time that something comes. */
void kube_route_rest(CURL *easy);

#endif
