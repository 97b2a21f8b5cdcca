#include "cli/openpai_users.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/memory.h"
#include <ctype.h>
#include <gnutls/gnutls.h>
#include <string.h>

#define USERS "users.json"

enum { HASH_DIGITS = 128 };

/* ---- secrets ---- */

/* Texts that hold JSON. */
static bool holds_json(const char *key)
{
    return strcmp(key, "grouplist") == 0 || strcmp(key, "extension") == 0;
}

/* NULL: it is no base64, or not what it must hold. */
static json_t *field_read(const char *key, const char *encoded)
{
    const gnutls_datum_t from = {(unsigned char *)(uintptr_t)encoded, (unsigned)strlen(encoded)};
    gnutls_datum_t bytes = {0};
    json_t *value;
    if (from.size > 0 && gnutls_base64_decode2(&from, &bytes) < 0)
        return NULL;
    if (holds_json(key) && bytes.size > 0)
        value = json_loadb((char *)bytes.data, bytes.size, 0, NULL);
    else
        value = json_stringn(bytes.size ? (char *)bytes.data : "", bytes.size);
    if (bytes.data)
        gnutls_memset(bytes.data, 0, bytes.size); /* it may be a hash */
    gnutls_free(bytes.data);
    return value;
}

static json_t *secret_read(const json_t *item)
{
    json_t *secret = json_object();
    const char *name =
        json_string_value(json_object_get(json_object_get(item, "metadata"), "name"));
    const char *key;
    json_t *encoded;
    json_object_set_new(secret, "secret", json_string(name ? name : ""));
    json_object_foreach (json_object_get(item, "data"), key, encoded) {
        const char *text = json_string_value(encoded);
        json_t *value = text ? field_read(key, text) : NULL;
        if (value)
            json_object_set_new(secret, key, value);
        else
            json_object_set_new(secret, "problem", json_sprintf("data.%s cannot be read", key));
    }
    return secret;
}

int openpai_secrets_read(struct text json, json_t **secrets, struct err *err)
{
    json_error_t problem;
    json_t *whole = json_loadb(json.at, json.length, 0, &problem), *item;
    const json_t *items = json_object_get(whole, "items");
    size_t i;
    if (!whole)
        return err_fail(err, ERR_INVALID, "", "line %d, column %d: %s", problem.line,
                        problem.column, problem.text);
    if (!json_is_array(items)) {
        json_decref(whole);
        return err_fail(err, ERR_INVALID, "",
                        "it is no list with items, as kubectl get secrets -o json prints it");
    }
    *secrets = json_array();
    json_array_foreach (items, i, item)
        json_array_append_new(*secrets, secret_read(item));
    json_decref(whole);
    return 0;
}

/* ---- users ---- */

struct taker {
    struct arena *arena;
    struct openpai_output *output;
    size_t taken, ssh_jobs, others;
};

static const char *text_in(const json_t *user, const char *key)
{
    const char *text = json_string_value(json_object_get(user, key));
    return text ? text : "";
}

static void left_out(struct taker *taker, const json_t *user, const char *why)
{
    const char *name = text_in(user, "username");
    openpai_note(taker->output, NOTE_TO_DO, USERS,
                 arena_copy(taker->arena, text_of(*name ? name : text_in(user, "secret"))),
                 arena_copy(taker->arena, text_of(why)));
}

/* As RFC 4180 has it. */
static void cell_put(struct buf *out, const char *text, char end)
{
    buf_char(out, '"');
    for (; *text; text++) {
        if (*text == '"')
            buf_char(out, '"');
        buf_char(out, *text);
    }
    buf_char(out, '"');
    buf_char(out, end);
}

static bool is_hash(const char *text)
{
    size_t length = 0;
    while (isxdigit((unsigned char)text[length]))
        length++;
    return length == HASH_DIGITS && !text[length];
}

static bool is_known(const struct openpai_output *output, const char *group)
{
    if (strcmp(group, "default") == 0 || strcmp(group, "admingroup") == 0)
        return true; /* each server has them */
    for (size_t i = 0; i < output->group_count; i++)
        if (strcmp(output->group_names[i], group) == 0)
            return true;
    return false;
}

static void groups_join(struct taker *taker, const json_t *user, struct buf *out)
{
    const json_t *list = json_object_get(user, "grouplist");
    json_t *item;
    size_t i;
    json_array_foreach (list, i, item) {
        const char *group = json_string_value(item);
        if (!group)
            continue;
        if (!is_known(taker->output, group)) {
            left_out(taker, user,
                     arena_format(taker->arena, "the group %s is in no file: put the user in it",
                                  group));
            continue;
        }
        if (out->length)
            buf_char(out, ',');
        buf_string(out, group);
    }
}

/* The keys for ssh; the rest belongs to OpenPAI's own pages. */
static void extension_put(struct taker *taker, const json_t *user, struct buf *out)
{
    const json_t *extension = json_object_get(user, "extension");
    json_t *keys = json_object_get(extension, "sshKeys");
    const bool has_job = json_object_get(extension, "jobSSH") != NULL;
    taker->ssh_jobs += has_job;
    taker->others += json_object_size(extension) > (size_t)(keys != NULL) + has_job;
    if (!json_is_array(keys) || json_array_size(keys) == 0)
        return;
    json_t *kept = json_pack("{s:O}", "sshKeys", keys);
    char *text = json_dumps(kept, JSON_COMPACT);
    buf_string(out, text);
    free(text);
    json_decref(kept);
}

static void user_take(struct taker *taker, const json_t *user)
{
    struct buf *out = &taker->output->users;
    cleanup_buf struct buf groups = BUF_INIT, extension = BUF_INIT;
    const char *problem = json_string_value(json_object_get(user, "problem"));
    if (problem) {
        left_out(taker, user, problem);
        return;
    }
    if (!*text_in(user, "username")) {
        left_out(taker, user, "it is no user's secret: it has no username");
        return;
    }
    if (!is_hash(text_in(user, "password"))) {
        left_out(taker, user,
                 "no hash of a password that can be taken over: the user comes with the first "
                 "login by sign-on, or by skep user add");
        return;
    }
    groups_join(taker, user, &groups);
    extension_put(taker, user, &extension);
    if (!out->length)
        buf_string(out, "username,passwordHash,email,admin,virtualCluster,groups,extension\n");
    cell_put(out, text_in(user, "username"), ',');
    cell_put(out, text_in(user, "password"), ',');
    cell_put(out, text_in(user, "email"), ',');
    cell_put(out, strcmp(text_in(user, "admin"), "true") == 0 ? "true" : "false", ',');
    cell_put(out, text_in(user, "virtualCluster"), ',');
    cell_put(out, buf_cstr(&groups), ',');
    cell_put(out, buf_cstr(&extension), '\n');
    taker->taken++;
}

/* What stands there as the hash of a password is that of the user's object id at the provider,
 * which many can look up: whoever knew it could log in here, where passwords are good as well. */
static void users_of_signon(const json_t *users, struct arena *arena, struct openpai_output *output)
{
    openpai_note(
        output, NOTE_TO_DO, USERS, "",
        arena_format(arena,
                     "%zu secrets are of users who logged in by OpenID Connect and have no "
                     "passwords: each user comes with the first login; put them in their "
                     "groups and give them their ssh keys then",
                     json_array_size(users)));
}

void openpai_users_take(const json_t *users, struct arena *arena, struct openpai_output *output)
{
    struct taker taker = {.arena = arena, .output = output};
    json_t *user;
    size_t i;
    if (output->has_signon) {
        users_of_signon(users, arena, output);
        return;
    }
    json_array_foreach (users, i, user)
        user_take(&taker, user);
    openpai_note(output, NOTE_TAKEN, USERS, "",
                 arena_format(arena,
                              "%zu users are in users.csv: skep user import users.csv makes them, "
                              "when groups.sh has run; their passwords stay",
                              taker.taken));
    if (taker.ssh_jobs)
        openpai_note(output, NOTE_GONE, USERS, "extension.jobSSH",
                     "Skep makes keys of its own for each job");
    if (taker.others)
        openpai_note(output, NOTE_GONE, USERS, "extension",
                     arena_format(arena,
                                  "%zu users have more than sshKeys there: settings and tokens of "
                                  "OpenPAI's pages",
                                  taker.others));
}
