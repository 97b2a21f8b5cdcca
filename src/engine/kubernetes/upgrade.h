/* upgrade.h — a connection to the API server that speaks WebSocket.
 *
 * Edge. libcurl connects, with what the calls of the client have; the handshake is done here, as
 * Debian's libcurl speaks no WebSocket. One thread at a time.
 */
#ifndef ENGINE_KUBERNETES_UPGRADE_H
#define ENGINE_KUBERNETES_UPGRADE_H
#include <stddef.h>
#include <sys/types.h>

struct err;
struct kube_access;
struct kube_client;
struct kube_upgrade;

enum {
    UPGRADE_MS = 10 * 1000,
    UPGRADE_PAUSE_MS = 5 * 1000, /* a longer one, which the server asks for, is not waited for */
};

/* Waits, UPGRADE_MS at most after an exec plugin has said who asks and a pause of all that ask the
 * server is over. ERR_NOT_FOUND, ERR_CONFLICT
 * (400, 409), ERR_UNAVAILABLE: what the server answered instead, or that it did not. */
int kube_upgrade_open(struct kube_client *client, const struct kube_access *access,
                      const char *path, const char *protocol, struct kube_upgrade **out,
                      struct err *err);
void kube_upgrade_close(struct kube_upgrade *upgrade); /* NULL is fine */

int kube_upgrade_fd(const struct kube_upgrade *upgrade);
/* As websocket_ops wants them; do not block. */
ssize_t kube_upgrade_read(struct kube_upgrade *upgrade, void *bytes, size_t size);
ssize_t kube_upgrade_write(struct kube_upgrade *upgrade, const void *bytes, size_t size);

#endif
