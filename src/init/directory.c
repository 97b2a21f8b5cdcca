#include "init/directory.h"

#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "init/job_file.h"

const char *job_full_name(const struct job_file *job, struct arena *arena)
{
    return job->is_namespaced ? arena_format(arena, "%s~%s", job->user, job->name) : job->name;
}

static bool is_word(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

const char *directory_expand(const struct job_file *job, const char *directory, struct arena *arena)
{
    const struct {
        const char *name, *value;
    } known[] = {
        {"$QIZHI_DEFAULT_FS_URI", job->fs_uri}, {"$PAI_DEFAULT_FS_URI", job->fs_uri},
        {"$QIZHI_JOB_NAME", job->name},         {"$PAI_JOB_NAME", job_full_name(job, arena)},
        {"$QIZHI_USER_NAME", job->user},        {"$PAI_USER_NAME", job->user},
        {"$PAI_USERNAME", job->user},
    };
    cleanup_buf struct buf out = BUF_INIT;
    while (*directory) {
        size_t i = 0;
        for (; i < sizeof known / sizeof known[0]; i++) {
            size_t length = strlen(known[i].name);
            if (strncmp(directory, known[i].name, length) == 0 && !is_word(directory[length])) {
                buf_string(&out, known[i].value);
                directory += length;
                break;
            }
        }
        if (i == sizeof known / sizeof known[0])
            buf_char(&out, *directory++);
    }
    return arena_copy(arena, buf_as_text(&out));
}
