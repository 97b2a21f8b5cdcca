#include "base/err.h"

#include <stdio.h>
#include <string.h>

int err_vfail(struct err *err, int code, const char *path, const char *format, va_list args)
{
    if (!err)
        return code;
    err->code = code;
    snprintf(err->path, sizeof err->path, "%s", path ? path : "");
    vsnprintf(err->text, sizeof err->text, format, args);
    return code;
}

int err_fail(struct err *err, int code, const char *path, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    err_vfail(err, code, path, format, args);
    va_end(args);
    return code;
}

int err_errno(struct err *err, int number, const char *format, ...)
{
    if (!err)
        return ERR_IO;
    va_list args;
    va_start(args, format);
    err_vfail(err, ERR_IO, "", format, args);
    va_end(args);
    size_t used = strlen(err->text);
#ifdef __GLIBC__ /* strerror is not thread-safe there; musl's, in skep-init, is */
    const char *reason = strerrordesc_np(number);
#else
    const char *reason = strerror(number);
#endif
    snprintf(err->text + used, sizeof err->text - used, ": %s", reason ? reason : "unknown error");
    return ERR_IO;
}

const char *err_name(int code)
{
    static const char *const names[] = {
        "ok",   "invalid",     "unauthorized", "forbidden", "not-found",   "conflict", "too-big",
        "busy", "unavailable", "io",           "corrupt",   "unsupported", "internal", "quota",
    };
    int index = -code;
    if (index < 0 || index >= (int)(sizeof names / sizeof names[0]))
        return "unknown";
    return names[index];
}
