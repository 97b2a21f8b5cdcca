/* tree.h — the files of a storage, for a user who is no task: found, listed, read, made, removed.
 *
 * Edge. May block as long as the disk does: not for threads that serve requests. Tasks may change
 * the tree at any time, and its names are theirs. So each name of a path is opened below the folder
 * that the name before it led to, without following links and without leaving the file system
 * (openat2), and what is done is done to the folder that was opened, whatever stands at its name by
 * then. Only plain files and folders are opened. What a task of the user could not do is refused
 * (rights.h). Needs Linux 5.6 and /proc.
 *
 * Errors: ERR_NOT_FOUND; ERR_INVALID: not a folder, not a plain file; ERR_FORBIDDEN: no task could;
 * ERR_CONFLICT: it is there, it is not empty, the disk is full; ERR_IO.
 */
#ifndef FILES_TREE_H
#define FILES_TREE_H
#include "files/path.h"
#include "files/rights.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct arena;
struct err;
struct stat;
struct storage;

/* The folder of a user in a storage that is not shared, made when it is not there; a link is none.
 * `directory`: the storage's. */
int files_user_folder(const struct storage *storage, int directory, const char *user,
                      struct err *err);

struct files_root {
    int fd;
    struct files_view view;
    bool is_private; /* the user's own folder: any user of their images may write what is made */
    bool is_read_only;
    const char *name; /* of the storage */
};

/* The folder that a task of the user would have mounted. `nobody`: see rights.h. ERR_UNSUPPORTED:
 * the storage has no directory here. */
int files_root_open(const struct storage *storage, const char *user, uint32_t nobody,
                    struct files_root *root, struct err *err);
void files_root_release(struct files_root *root);

/* The folder that the first `count` names lead to, as a descriptor that opens nothing (O_PATH), in
 * which the wishes (FILES_*; FILES_EXECUTE is one in any case) are allowed. */
int files_folder(const struct files_root *root, const struct files_path *path, size_t count,
                 unsigned wishes, struct err *err);
/* Open a plain file for reading. */
int files_open(const struct files_root *root, const struct files_path *path, struct stat *stat,
               struct err *err);

enum files_kind { FILES_FILE, FILES_FOLDER, FILES_OTHER }; /* links, devices, … */
struct files_entry {
    const char *name; /* in the arena */
    enum files_kind kind;
    uint64_t size;
    int64_t changed_ms;
};
enum { FILES_ENTRIES_MAX = 50000 };
struct files_listing {
    struct files_entry *items; /* by name; the caller frees them (cleanup_array) */
    size_t count, room;
};
/* ERR_TOO_BIG: more than FILES_ENTRIES_MAX. */
int files_list(const struct files_root *root, const struct files_path *path, struct arena *arena,
               struct files_listing *listing, struct err *err);

int files_make_folder(const struct files_root *root, const struct files_path *path,
                      struct err *err);
/* A file, link or whatever else, or an empty folder. */
int files_remove(const struct files_root *root, const struct files_path *path, struct err *err);
/* Nothing is replaced. */
int files_rename(const struct files_root *root, const struct files_path *from,
                 const struct files_path *to, struct err *err);

/* What the system said about the file or folder, as one of the errors above. */
int files_errno(int number, const char *what, const char *name, struct err *err);

#endif
