#include "files/path.h"
#include "base/err.h"
#include <assert.h>
#include <stdio.h>
#include <string.h>

static int name_check(struct text name, const char *field, struct err *err)
{
    if (!name.length)
        return err_fail(err, ERR_INVALID, field, "a name in the path is empty");
    if (text_is(name, ".") || text_is(name, ".."))
        return err_fail(err, ERR_INVALID, field, "the path has '%.*s' in it: name the folder",
                        TEXT_ARG(name));
    if (name.length > FILES_NAME_MAX)
        return err_fail(err, ERR_TOO_BIG, field, "a name has more than %d bytes", FILES_NAME_MAX);
    for (size_t i = 0; i < name.length;) {
        const size_t length = text_utf8_length(name, i);
        if (length == 0)
            return err_fail(err, ERR_INVALID, field, "a name is not UTF-8");
        if ((unsigned char)name.at[i] < 0x20 || name.at[i] == 0x7f)
            return err_fail(err, ERR_INVALID, field, "a name has a control character");
        i += length;
    }
    return 0;
}

int files_path_parse(struct text text, const char *field, struct files_path *path, struct err *err)
{
    path->count = 0;
    if (text.length > FILES_PATH_MAX)
        return err_fail(err, ERR_TOO_BIG, field, "the path has more than %d bytes", FILES_PATH_MAX);
    char *to = path->text;
    for (struct text rest = text; text.length && rest.at;) {
        struct text name = text_cut(&rest, '/');
        int code = name_check(name, field, err);
        if (code)
            return code;
        if (path->count == FILES_DEPTH_MAX)
            return err_fail(err, ERR_TOO_BIG, field, "the path has more than %d names",
                            FILES_DEPTH_MAX);
        path->names[path->count++] = (uint16_t)(to - path->text);
        memcpy(to, name.at, name.length);
        to[name.length] = '\0';
        to += name.length + 1;
    }
    assert(to <= path->text + sizeof path->text);
    return 0;
}

void files_spare_name(const char *name, char spare[FILES_SPARE_SIZE])
{
    const struct text text = {name, strlen(name)};
    assert(text.length > 0);
    const int length = snprintf(spare, FILES_SPARE_SIZE, ".skep-%016llx",
                                (unsigned long long)text_hash(text, 0x736b6570));
    assert(length < FILES_SPARE_SIZE);
    (void)length;
}
