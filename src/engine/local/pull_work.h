/* pull_work.h — what the steps of one pull share: fetch.c, unpack.c, program.c.
 *
 * Edge, internal to pull.c and these.
 */
#ifndef ENGINE_LOCAL_PULL_WORK_H
#define ENGINE_LOCAL_PULL_WORK_H
#include "base/arena.h"
#include "engine/local/blobs.h"
#include "engine/local/manifest.h"
#include "engine/local/pull.h"
#include "engine/local/registry.h"
#include <sys/types.h>

enum { PULL_PATH_MAX = 1200, PULL_ARGS_MAX = 24 };

struct work {
    struct pull *pull;
    struct arena arena;
    char folder[PULL_PATH_MAX];    /* pulls/N */
    char auth_file[PULL_PATH_MAX]; /* "" = none */
    struct registry *registry;     /* NULL for a local image */
    bool is_insecure;              /* no TLS is expected of it */
    bool is_believed;              /* who answers at the registry's address is the registry */
    struct blob_source source, host_source;
    struct manifest manifest; /* as the registry says; of a local image none */
    int exit_code;            /* of the last program; above 127: it was killed */
    /* while a program runs */
    int told_percent;
    uint64_t seen_bytes;
    int64_t moved_ms;
    uint64_t unpack_bytes; /* of the layers that are being unpacked */
    int64_t counted_ms;    /* when to count entries again */
    int64_t due_ms;        /* of an inspection */
};

/* --- failures (program.c) --- */

/* A complaint of a program, read whole: sets the pull's reason; the end of a long one is what stays
 * in `err`. */
int work_fail(struct work *work, const char *complaint, struct err *err);
/* `err` is about this machine, not about the image. */
int work_fail_here(struct work *work, struct err *err);
/* `err` is final and has this reason. */
int work_fail_final(struct work *work, const char *reason, const struct err *err);

/* --- programs (program.c) --- */

struct program {
    const char *const *argv;
    int out;           /* a descriptor; 0: /dev/null */
    uint32_t check_ms; /* how often it is checked */
    /* Is all well with it? Below 0 it is killed, and that is the result. NULL: always. */
    int (*check)(struct work *work, pid_t pid, struct err *err);
};

/* Run it to its end, which comes early when the server stops. */
int program_run(struct work *work, const struct program *program, struct err *err);

/* --- fetching (fetch.c) --- */

int auth_put(struct work *work, struct err *err);
void auth_remove(struct work *work);
/* What the registry has under the name now: `digest` of the manifest for this machine, which is
 * read into work->manifest. */
int registry_resolve(struct work *work, char digest[DIGEST_SIZE], struct err *err);
/* Has the registry shown that it has every blob of the manifest, and serves it to this user? Asks
 * it about those that it has delivered before. */
bool registry_has_shown(struct work *work);
/* Copy the image into the work's folder. Of a registry's only the blobs that it has not shown to
 * have are fetched; `digest` NULL: whatever the reference names. */
int image_copy(struct work *work, const char *digest, struct err *err);

/* Half of what is kept free on the disk is left to others: below that the pull ends with DiskFull.
 */
int room_check(struct work *work, struct err *err);

/* --- unpacking (unpack.c) --- */

/* What lies below a folder. False: nested too deep, or unreadable. Ends beyond max_entries. */
struct tree_size {
    uint64_t bytes, entries; /* bytes on the disk; hard links share theirs */
};
bool tree_measure(const char *path, uint64_t max_entries, struct tree_size *size);

/* Bytes of the manifest's blobs as they lie in LAYOUT/blobs, whatever the manifest says of them and
 * however often it names one. */
uint64_t layout_bytes(const char *layout, const struct manifest *manifest);
/* What an image whose layers have so many bytes may unpack to. */
uint64_t unpack_bytes_max(const struct engine_local_config *config, uint64_t compressed);

/* LAYOUT:TAG, which has this manifest, into the work's FOLDER/rootfs. The reason ImageTooBig: it is
 * more than an image may unpack to. */
int image_unpack(struct work *work, const char *layout, const char *tag,
                 const struct manifest *manifest, struct tree_size *size, struct err *err);

#endif
