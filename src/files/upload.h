/* upload.h — a file that comes in parts, and stands in its folder when it is whole.
 *
 * Edge. May block, as tree.h. Until then the file has no name (O_TMPFILE): nobody can open,
 * exchange or link it, and whatever ends the server, the file system takes it back. Placed, it is
 * there at once, whole and on the disk. Not for two threads at one time.
 */
#ifndef FILES_UPLOAD_H
#define FILES_UPLOAD_H
#include "files/tree.h"

struct files_upload {
    int folder, fd;
    uint64_t size, received;
    uint64_t synced; /* of the received ones */
    char name[FILES_NAME_MAX + 1];
    bool is_replacing; /* what stands at its name then is replaced, unless it is a folder */
};

/* `reserve`: bytes of the disk that must stay free. ERR_UNSUPPORTED: the file system knows no files
 * without a name. Errors of tree.h. */
int files_upload_begin(const struct files_root *root, const struct files_path *path, uint64_t size,
                       bool is_replacing, uint64_t reserve, struct files_upload *upload,
                       struct err *err);
/* The next bytes, at upload->received. After an error `received` is as it was. */
int files_upload_add(struct files_upload *upload, struct text bytes, uint64_t reserve,
                     struct err *err);
/* All bytes are there. What the folder allows is asked again: it may have been begun hours ago. */
int files_upload_place(const struct files_root *root, struct files_upload *upload, struct err *err);
/* What is not placed is gone. */
void files_upload_release(struct files_upload *upload);

#endif
