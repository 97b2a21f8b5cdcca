/* reference.h — what a job file may name as its image.
 *
 * Pure.
 *   [docker://][HOST[:PORT]/]NAME[:TAG][@sha256:DIGEST]   a registry's; docker.io and library/ as
 *                                                         Docker completes them
 *   docker-archive:PATH   oci-archive:PATH                a file
 *   oci:PATH[:TAG]                                        an OCI layout
 *   dir:PATH                                              a root file system as it is, or skopeo's
 *                                                         directory format (it has a manifest.json)
 * Local paths are absolute. A NAME without HOST and digest is first looked for below the folders of
 * local images (local.h, image_roots). Source: distribution/reference grammar;
 * containers-transports(5).
 */
#ifndef ENGINE_LOCAL_REFERENCE_H
#define ENGINE_LOCAL_REFERENCE_H
#include "base/text.h"
#include <stdbool.h>

struct err;

enum { REFERENCE_MAX = 1024 };

enum reference_kind {
    REFERENCE_REGISTRY,
    REFERENCE_DOCKER_ARCHIVE,
    REFERENCE_OCI_ARCHIVE,
    REFERENCE_OCI,
    REFERENCE_DIR,
};

struct reference {
    enum reference_kind kind;
    char host[256];           /* registry: "docker.io", "127.0.0.1:5000" */
    char path[REFERENCE_MAX]; /* registry: "library/busybox"; else the local path */
    char tag[129];            /* "latest" when a registry's has neither tag nor digest; or "" */
    char digest[72];          /* "sha256:…" or "" */
};

/* ERR_INVALID says what is wrong with it. */
int reference_parse(const char *text, struct reference *reference, struct err *err);

/* May a local path stand in an overlay's options, which know no quoting? It holds none of : , \ "
 * and newline. */
bool reference_path_is_plain(struct text path);

/* A registry's reference may change under its name: `latest`. */
bool reference_is_moving(const struct reference *reference);

/* Is HOST[:PORT] on this machine? Then no TLS is expected, as Docker does. */
bool reference_is_loopback(const char *host);

/* What skopeo calls it; `digest` replaces tag and digest of a registry's when it is not NULL. */
void reference_skopeo(const struct reference *reference, const char *digest, char *out,
                      unsigned long size);

#endif
