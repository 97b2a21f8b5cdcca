#include "signon/secret_file.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/memory.h"
#include "sys/file.h"
#include "sys/secret.h"
#include <assert.h>

int secret_file_read(const char *path, const char *key, size_t max, char **secret, struct err *err)
{
    cleanup_buf struct buf content = BUF_INIT;
    assert(path && max);
    int code = file_read(path, max, &content, err);
    struct text text = text_trim(buf_as_text(&content));
    if (!code && !text.length)
        code = err_fail(err, ERR_INVALID, key, "%.150s is empty", path);
    if (!code) {
        *secret = mem_alloc(text.length + 1);
        memcpy(*secret, text.at, text.length);
        (*secret)[text.length] = '\0';
    }
    if (content.at)
        secret_wipe(content.at, content.length);
    return code;
}
