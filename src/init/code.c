/* codeDir of a v1 job: a copy in the working directory, under its own last name (".../code" becomes
 * "./code"). The folder is read from within the container, where a link can lead nowhere else. Data
 * is not copied, as in early PAI. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/err.h"
#include "init/init.h"
#include "sys/cleanup.h"

enum { CODE_BYTES_MAX = 200000000, DEPTH_MAX = 64, COPY_BYTES = 64 * 1024, LINK_MAX = 4096 };

struct code_copy {
    struct err *err;
    uint64_t bytes;
};

static int tree_copy(struct code_copy *copy, int from, int to, unsigned depth);

static int too_big(struct code_copy *copy)
{
    return err_fail(copy->err, ERR_TOO_BIG, "", "codeDir holds more than %d bytes", CODE_BYTES_MAX);
}

static int file_copy(struct code_copy *copy, int from_dir, int to_dir, const char *name,
                     const struct stat *what)
{
    static char bytes[COPY_BYTES];
    if (copy->bytes + (uint64_t)what->st_size > CODE_BYTES_MAX)
        return too_big(copy);
    cleanup_close int from = openat(from_dir, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (from < 0)
        return err_errno(copy->err, errno, "codeDir: cannot open %s", name);
    cleanup_close int to =
        openat(to_dir, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, what->st_mode & 0777);
    if (to < 0)
        return err_errno(copy->err, errno, "codeDir: cannot create %s", name);
    ssize_t length;
    while ((length = read(from, bytes, sizeof bytes)) > 0) {
        copy->bytes += (uint64_t)length;
        if (copy->bytes > CODE_BYTES_MAX) /* it grows while it is read */
            return too_big(copy);
        for (ssize_t done = 0, part; done < length; done += part)
            if ((part = write(to, bytes + done, (size_t)(length - done))) < 0)
                return err_errno(copy->err, errno, "codeDir: cannot write %s", name);
    }
    if (length < 0)
        return err_errno(copy->err, errno, "codeDir: cannot read %s", name);
    return 0;
}

static int link_copy(struct code_copy *copy, int from, int to, const char *name)
{
    char target[LINK_MAX];
    ssize_t length = readlinkat(from, name, target, sizeof target - 1);
    if (length < 0)
        return err_errno(copy->err, errno, "codeDir: cannot read the link %s", name);
    target[length] = '\0';
    if (symlinkat(target, to, name) < 0 && errno != EEXIST)
        return err_errno(copy->err, errno, "codeDir: cannot create the link %s", name);
    return 0;
}

static int folder_copy(struct code_copy *copy, int from, int to, const char *name, unsigned depth)
{
    if (depth >= DEPTH_MAX)
        return err_fail(copy->err, ERR_TOO_BIG, "", "codeDir is more than %d folders deep",
                        DEPTH_MAX);
    if (mkdirat(to, name, 0755) < 0 && errno != EEXIST)
        return err_errno(copy->err, errno, "codeDir: cannot create %s", name);
    cleanup_close int inner_from = openat(from, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cleanup_close int inner_to = openat(to, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (inner_from < 0 || inner_to < 0)
        return err_errno(copy->err, errno, "codeDir: cannot open %s", name);
    return tree_copy(copy, inner_from, inner_to, depth + 1);
}

static int entry_copy(struct code_copy *copy, int from, int to, const char *name, unsigned depth)
{
    struct stat what;
    if (fstatat(from, name, &what, AT_SYMLINK_NOFOLLOW) < 0)
        return err_errno(copy->err, errno, "codeDir: cannot look at %s", name);
    if (S_ISDIR(what.st_mode))
        return folder_copy(copy, from, to, name, depth);
    if (S_ISLNK(what.st_mode))
        return link_copy(copy, from, to, name);
    return S_ISREG(what.st_mode) ? file_copy(copy, from, to, name, &what) : 0;
}

static int tree_copy(struct code_copy *copy, int from, int to, unsigned depth)
{
    int again = dup(from), code = 0;
    cleanup_dir DIR *folder = again < 0 ? NULL : fdopendir(again);
    struct dirent *entry;
    if (!folder)
        return err_errno(copy->err, errno, "codeDir: cannot list a folder");
    while (code == 0 && (entry = readdir(folder)))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            code = entry_copy(copy, from, to, entry->d_name, depth);
    return code;
}

int code_copy(struct init *init, struct err *err)
{
    const char *source = init->task.code_path;
    if (!source[0])
        return 0;
    struct text path = text_of(init->job.code_dir);
    while (path.length > 0 && path.at[path.length - 1] == '/')
        path.length--;
    size_t begin = path.length;
    while (begin > 0 && path.at[begin - 1] != '/')
        begin--;
    const char *name =
        arena_copy(&init->arena, (struct text){path.at + begin, path.length - begin});
    if (!name[0] || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        name = "code";
    if (mkdir(name, 0755) < 0 && errno != EEXIST)
        return err_errno(err, errno, "codeDir: cannot create %s in %s", name, init->work_dir);
    cleanup_close int from = open(source, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (from < 0)
        return err_errno(err, errno, "codeDir: cannot open %s", source);
    cleanup_close int to = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (to < 0)
        return err_errno(err, errno, "codeDir: cannot open %s", name);
    struct code_copy copy = {err, 0};
    int code = tree_copy(&copy, from, to, 0);
    if (code == ERR_TOO_BIG)
        init->end.code = EXIT_FILE_CODE_TOO_BIG;
    if (code == 0)
        note(init, "codeDir: %llu bytes copied to %s/%s", (unsigned long long)copy.bytes,
             init->work_dir, name);
    return code;
}
