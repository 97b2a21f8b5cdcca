/* rights.h — what a task could do to a file of a storage, asked by somebody who is no task.
 *
 * Pure. A user may do through the API what a task of theirs may do, and no more. A task is root in
 * its container, and can become any of the users 1 … 65535 there; what is on the disk with ids that
 * it has, it may read and write (docs/operator/security.md, "User ids"). What has other ids is
 * nobody's to it: then the permissions of others count. With rootSquash root's files are of these.
 */
#ifndef FILES_RIGHTS_H
#define FILES_RIGHTS_H
#include <stdbool.h>
#include <stdint.h>

enum { FILES_IDS = 65536 };
enum files_wish { FILES_EXECUTE = 1, FILES_WRITE = 2, FILES_READ = 4 };

struct files_view {
    uint32_t user, group; /* who owns the folder of the storage, or the user's own in it */
    bool is_squashed;     /* root of a task is who owns the folder … */
    uint32_t nobody;      /* … and where that is root, this id */
};

/* Of a file or folder: who owns it, and its permissions. */
struct files_node {
    uint32_t user, group, mode;
};

/* `wishes`: FILES_*, or several of them. */
bool files_may(const struct files_view *view, const struct files_node *node, unsigned wishes);
/* May names be taken out of the folder, whoever owns what they name? */
bool files_may_unlink(const struct files_view *view, const struct files_node *folder);

/* Who owns what is written: root of a task. */
struct files_owner {
    uint32_t user, group;
};
struct files_owner files_writer(const struct files_view *view);

#endif
