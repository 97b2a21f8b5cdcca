/* storage.h — storages of jobs: checked when a job is submitted, mounted when its tasks start. */
#ifndef SERVER_STORAGE_H
#define SERVER_STORAGE_H
#include "engine/engine.h"
#include "model/storage.h"

struct arena;
struct err;
struct problems;
struct spec;
struct store_reader;

/* May the user have all that the job file names? An empty list of the file is filled with the
 * user's defaults; that there are none is a warning. ERR_NOT_FOUND, ERR_FORBIDDEN: with the line.
 */
int storage_submit_check(struct storage_list storages, struct store_reader *reader,
                         const char *user, struct spec *spec, struct problems *problems,
                         struct arena *arena, struct err *err);

/* The mounts for a task, outer folders first, in the arena. `has_claims`: its engine mounts the
 * claims of a Kubernetes cluster, and a storage that has one is taken by it; nothing of that is
 * looked at here. The folder of a user in a storage that is not shared is made. ERR_INVALID: the
 * storage is not configured any more, or not for this engine; ERR_IO: its directory is not there,
 * or the user's folder is none. */
int storage_mounts_make(struct storage_list storages, const char *user, bool has_claims,
                        const struct spec *spec, struct arena *arena, struct engine_mount *mounts,
                        struct err *err);

#endif
