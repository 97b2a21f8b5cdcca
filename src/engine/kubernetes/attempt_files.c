#include "engine/kubernetes/attempt_files.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>

#include "base/text.h"
#include "sys/cleanup.h"

void attempt_file_path(const char *directory, struct attempt_id attempt,
                       char path[ATTEMPT_FILE_PATH_MAX])
{
    snprintf(path, ATTEMPT_FILE_PATH_MAX, "%.400s/%" PRIu64, directory, attempt.v);
}

void attempt_files_each(const char *directory,
                        void (*seen)(void *context, struct attempt_id attempt), void *context)
{
    cleanup_dir DIR *dir = opendir(directory);
    for (struct dirent *entry; dir && (entry = readdir(dir));) {
        int64_t attempt;
        if (text_to_int64(text_of(entry->d_name), &attempt) && attempt > 0)
            seen(context, (struct attempt_id){(uint64_t)attempt});
    }
}
