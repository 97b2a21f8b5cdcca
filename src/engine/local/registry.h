/* registry.h — asks a registry over HTTP whether something is there and may be read.
 *
 * Edge. Fetching is skopeo's; this asks only whether something is there and may be read with these
 * credentials. It knows the Docker Registry HTTP API V2 and its tokens ("Bearer"), not the mirrors
 * of registries.conf: where it gets no answer, nothing is concluded.
 */
#ifndef ENGINE_LOCAL_REGISTRY_H
#define ENGINE_LOCAL_REGISTRY_H
#include "base/text.h"
#include <stdbool.h>

struct arena;
struct err;

struct registry_config {
    const char *host;            /* HOST[:PORT] */
    const char *path;            /* of the repository */
    const char *user, *password; /* "": anonymous */
    bool has_other_credentials;  /* the pull has, instead of these: who refuses us may serve it */
    bool is_insecure;            /* TLS without a check of the certificate, or none */
    void *context;
    bool (*is_stopping)(void *context); /* a question under way is given up then */
};

/* One connection and one token serve all questions. Strings are borrowed. */
struct registry;
struct registry *registry_new(const struct registry_config *config);
void registry_free(struct registry *registry); /* NULL is fine */

/* The status that the registry answers to a HEAD of its manifest NAME (a tag or digest), in
 * *status. ERR_UNAVAILABLE: no answer that counts, now or to an earlier question, after which it is
 * not asked again: nobody there, no token to be had from a service that is away or busy, or refused
 * to us while the pull has other credentials. */
int registry_manifest_status(struct registry *registry, const char *name, long *status,
                             struct err *err);

/* Does the repository serve this blob to these credentials? False when it does not say so. */
bool registry_has_blob(struct registry *registry, const char *digest);

/* The realm, service and scope of a challenge (RFC 6750, 3) as the address of a token; "" when it
 * is no Bearer challenge. In the arena. */
const char *registry_token_url(struct text challenge, struct arena *arena);

enum registry_auth {
    REGISTRY_AUTH_NONE,
    REGISTRY_AUTH_FOUND,
    REGISTRY_AUTH_OTHER, /* what only skopeo can use: a helper, an identity token; or unreadable */
};

/* The user and password for a repository in a file as containers-auth.json(5) describes it, by its
 * most specific key. */
enum registry_auth registry_auth_find(struct text file, const char *host, const char *path,
                                      struct arena *arena, const char **user,
                                      const char **password);

#endif
