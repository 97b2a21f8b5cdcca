/* v1_files.c — see v1_files.h. */
#include "server/v1_files.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "init/directory.h"
#include "init/job_file.h"
#include "spec/spec.h"
#include "sys/secret.h"
#include <string.h>

struct making {
    const struct file_space *space;
    struct arena *arena;
    struct job_file *file;
    struct err *err;
};

static int path_below(const struct making *making, const char *field, const char *written,
                      const char **below)
{
    return file_space_path(making->space, field,
                           directory_expand(making->file, written, making->arena), making->arena,
                           below, making->err);
}

static const char *joined(const struct making *making, const char *root, const char *below)
{
    return arena_format(making->arena, "%s%s%s", root, below[0] ? "/" : "", below);
}

static int code_dir_make(const struct making *making, const char *written, const char **code_path)
{
    const char *below;
    int code = path_below(making, "codeDir", written, &below);
    if (code == 0)
        code = file_space_folder_check(making->space, "codeDir", below, making->err);
    if (code < 0)
        return code;
    making->file->code_dir = joined(making, making->space->uri, below);
    *code_path = joined(making, making->space->directory, below);
    return 0;
}

/* Programs read and write these themselves, and may do so elsewhere. *below stays NULL then. */
static int place_make(const struct making *making, const char *field, const char *written,
                      const char **uri, const char **below)
{
    *uri = directory_expand(making->file, written, making->arena);
    struct err other;
    int code = file_space_path(making->space, field, *uri, making->arena, below, &other);
    if (code == ERR_UNSUPPORTED)
        return 0;
    if (code == 0)
        *uri = joined(making, making->space->uri, *below);
    else
        *making->err = other;
    return code;
}

static int output_dir_make(const struct making *making, const char *written)
{
    const struct job_file *file = making->file;
    const char *below = NULL;
    if (!written[0])
        written = arena_format(making->arena, "/Output/%s/%s", file->user, file->name);
    int code = place_make(making, "outputDir", written, &making->file->output_dir, &below);
    if (code == 0 && below)
        code = file_space_folder_make(making->space, "outputDir", below, making->err);
    return code;
}

int v1_files_make(const struct spec *spec, const struct file_space *space, struct arena *arena,
                  struct job_file *file, struct v1_files *files, struct err *err)
{
    const struct making making = {space, arena, file, err};
    const char *below = NULL;
    int code = 0;
    *files = (struct v1_files){.code_path = ""};
    file->fs_uri = file->data_dir = file->output_dir = file->code_dir = "";
    if (spec->format == SPEC_V2)
        return 0;
    file->fs_uri = space->uri;
    files->mount = (struct engine_mount){.source = space->directory, .target = space->directory};
    files->is_mounted = spec->code_dir[0] || spec->data_dir[0] || spec->output_dir[0];
    if (spec->auth_file[0])
        code = path_below(&making, "authFile", spec->auth_file, &files->auth_path);
    if (code == 0 && spec->code_dir[0])
        code = code_dir_make(&making, spec->code_dir, &files->code_path);
    if (code == 0 && spec->data_dir[0])
        code = place_make(&making, "dataDir", spec->data_dir, &file->data_dir, &below);
    if (code == 0 && files->is_mounted)
        code = output_dir_make(&making, spec->output_dir);
    return code;
}

int v1_files_login(const struct v1_files *files, const struct file_space *space, const char *image,
                   struct arena *arena, const char **user, const char **password, struct err *err)
{
    cleanup_buf struct buf content = BUF_INIT;
    *user = *password = "";
    if (!files->auth_path)
        return 0;
    int code =
        file_space_read(space, "authFile", files->auth_path, AUTH_FILE_BYTES_MAX, &content, err);
    struct auth_file file;
    if (code == 0)
        code = auth_file_parse(buf_as_text(&content), arena, &file, err);
    if (code == 0 && auth_file_fits(&file, image)) {
        *user = file.user;
        *password = file.password;
    }
    if (content.at)
        secret_wipe(content.at, content.room);
    return code;
}
