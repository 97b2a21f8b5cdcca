#include "engine/local/reference.h"
#include "base/err.h"
#include "base/memory.h"
#include "base/text.h"
#include <stdio.h>
#include <string.h>

static const struct {
    const char *prefix;
    enum reference_kind kind;
} transports[] = {
    {"docker-archive:", REFERENCE_DOCKER_ARCHIVE},
    {"oci-archive:", REFERENCE_OCI_ARCHIVE},
    {"oci:", REFERENCE_OCI},
    {"dir:", REFERENCE_DIR},
};

static bool is_lower_or_digit(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool is_word(char c)
{
    return is_lower_or_digit(c) || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_tag(struct text tag)
{
    if (tag.length < 1 || tag.length > 128 || !is_word(tag.at[0]))
        return false;
    for (size_t i = 1; i < tag.length; i++)
        if (!is_word(tag.at[i]) && tag.at[i] != '.' && tag.at[i] != '-')
            return false;
    return true;
}

static bool is_digest(struct text digest)
{
    if (digest.length != 71 || !text_starts(digest, TEXT("sha256:")))
        return false;
    for (size_t i = 7; i < digest.length; i++)
        if (!((digest.at[i] >= '0' && digest.at[i] <= '9') ||
              (digest.at[i] >= 'a' && digest.at[i] <= 'f')))
            return false;
    return true;
}

/* Components of lower-case words joined by '.', '_', '__' or dashes. */
static bool is_path(struct text path)
{
    while (path.at) {
        struct text part = text_cut(&path, '/');
        if (part.length == 0 || !is_lower_or_digit(part.at[0]) ||
            !is_lower_or_digit(part.at[part.length - 1]))
            return false;
        for (size_t i = 0; i < part.length; i++)
            if (!is_lower_or_digit(part.at[i]) && !strchr("._-", part.at[i]))
                return false;
    }
    return true;
}

static bool is_host(struct text host)
{
    if (host.length == 0 || host.length > 255)
        return false;
    for (size_t i = 0; i < host.length; i++)
        if (!is_word(host.at[i]) && !strchr(".-:[]", host.at[i]))
            return false;
    return true;
}

static void text_put(char *out, size_t size, struct text text)
{
    snprintf(out, size, "%.*s", TEXT_ARG(text));
}

/* The first component is a host when it could not be a name: it has a dot, a port, or is localhost.
 */
static struct text host_cut(struct text *rest)
{
    struct text after = *rest;
    struct text first = text_cut(&after, '/');
    if (!after.at || !(memchr(first.at, '.', first.length) || memchr(first.at, ':', first.length) ||
                       text_is(first, "localhost")))
        return TEXT("docker.io");
    *rest = after;
    return first;
}

static int registry_parse(struct text rest, struct reference *reference, struct err *err)
{
    struct text named = rest, digest = rest;
    named = text_cut(&digest, '@');
    if (digest.at) {
        if (!is_digest(digest))
            return err_fail(err, ERR_INVALID, "",
                            "the digest of an image is sha256: and 64 digits "
                            "0-9 a-f, got \"%.*s\"",
                            TEXT_ARG(digest));
        text_put(reference->digest, sizeof reference->digest, digest);
    }
    struct text host = host_cut(&named), path = named;
    struct text tag = {NULL, 0};
    const char *colon = path.length ? memrchr(path.at, ':', path.length) : NULL;
    if (colon) {
        tag = (struct text){colon + 1, (size_t)(path.at + path.length - colon - 1)};
        path.length = (size_t)(colon - path.at);
        if (!is_tag(tag))
            return err_fail(err, ERR_INVALID, "", "\"%.*s\" is not a tag of an image",
                            TEXT_ARG(tag));
    }
    if (!is_host(host))
        return err_fail(err, ERR_INVALID, "", "\"%.*s\" is not a registry's host", TEXT_ARG(host));
    if (!is_path(path))
        return err_fail(err, ERR_INVALID, "",
                        "\"%.*s\" is not an image's name (lower-case words, digits, . _ - and /)",
                        TEXT_ARG(path));
    bool is_official = text_is(host, "docker.io") && !memchr(path.at, '/', path.length);
    text_put(reference->host, sizeof reference->host, host);
    snprintf(reference->path, sizeof reference->path, "%s%.*s", is_official ? "library/" : "",
             TEXT_ARG(path));
    if (tag.at)
        text_put(reference->tag, sizeof reference->tag, tag);
    else if (!digest.at)
        text_put(reference->tag, sizeof reference->tag, TEXT("latest"));
    return 0;
}

bool reference_path_is_plain(struct text path)
{
    for (size_t i = 0; i < path.length; i++)
        if (!path.at[i] || strchr(":,\\\n\"", path.at[i]))
            return false;
    return true;
}

static int local_parse(struct text path, struct reference *reference, struct err *err)
{
    if (path.length == 0 || path.at[0] != '/')
        return err_fail(err, ERR_INVALID, "",
                        "a local image is named by an absolute path, got "
                        "\"%.*s\"",
                        TEXT_ARG(path));
    const char *colon = memrchr(path.at, ':', path.length);
    if (reference->kind == REFERENCE_OCI && colon) {
        struct text tag = {colon + 1, (size_t)(path.at + path.length - colon - 1)};
        if (!is_tag(tag))
            return err_fail(err, ERR_INVALID, "", "\"%.*s\" is not a tag of an image",
                            TEXT_ARG(tag));
        text_put(reference->tag, sizeof reference->tag, tag);
        path.length = (size_t)(colon - path.at);
    }
    if (!reference_path_is_plain(path))
        return err_fail(err, ERR_INVALID, "",
                        "the path of a local image must not hold : , \\ \" or newline");
    text_put(reference->path, sizeof reference->path, path);
    return 0;
}

int reference_parse(const char *text, struct reference *reference, struct err *err)
{
    memset(reference, 0, sizeof *reference);
    struct text rest = text_of(text);
    if (rest.length == 0)
        return err_fail(err, ERR_INVALID, "", "the image has no name");
    if (rest.length >= REFERENCE_MAX - 16)
        return err_fail(err, ERR_INVALID, "", "the image's name is longer than %d bytes",
                        REFERENCE_MAX - 17);
    for (size_t i = 0; i < COUNT_OF(transports); i++) {
        struct text prefix = text_of(transports[i].prefix);
        if (text_starts(rest, prefix)) {
            reference->kind = transports[i].kind;
            return local_parse((struct text){rest.at + prefix.length, rest.length - prefix.length},
                               reference, err);
        }
    }
    if (text_starts(rest, TEXT("docker://")))
        rest = (struct text){rest.at + 9, rest.length - 9};
    reference->kind = REFERENCE_REGISTRY;
    return registry_parse(rest, reference, err);
}

bool reference_is_moving(const struct reference *reference)
{
    return reference->kind == REFERENCE_REGISTRY && !reference->digest[0] &&
           strcmp(reference->tag, "latest") == 0;
}

bool reference_is_loopback(const char *host)
{
    struct text name = text_of(host);
    if (text_starts(name, TEXT("[::1]")))
        return name.length == 5 || name.at[5] == ':';
    name = text_cut(&name, ':');
    if (text_is(name, "localhost"))
        return true;
    unsigned a, b, c, d;
    char rest;
    char copy[32];
    snprintf(copy, sizeof copy, "%.*s", TEXT_ARG(name));
    return sscanf(copy, "%u.%u.%u.%u%c", &a, &b, &c, &d, &rest) == 4 && a == 127 && b < 256 &&
           c < 256 && d < 256;
}

void reference_skopeo(const struct reference *reference, const char *digest, char *out,
                      unsigned long size)
{
    const char *tag = reference->tag;
    switch (reference->kind) {
    case REFERENCE_REGISTRY:
        if (!digest && reference->digest[0])
            digest = reference->digest;
        if (digest)
            snprintf(out, size, "docker://%s/%s@%s", reference->host, reference->path, digest);
        else
            snprintf(out, size, "docker://%s/%s:%s", reference->host, reference->path, tag);
        return;
    case REFERENCE_DOCKER_ARCHIVE:
        snprintf(out, size, "docker-archive:%s", reference->path);
        return;
    case REFERENCE_OCI_ARCHIVE:
        snprintf(out, size, "oci-archive:%s", reference->path);
        return;
    case REFERENCE_OCI:
        snprintf(out, size, "oci:%s%s%s", reference->path, tag[0] ? ":" : "", tag);
        return;
    case REFERENCE_DIR:
        snprintf(out, size, "dir:%s", reference->path);
        return;
    }
}
