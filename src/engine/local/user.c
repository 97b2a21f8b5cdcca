#include "engine/local/user.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/text.h"
#include "sys/untrusted.h"
#include <stdio.h>
#include <string.h>

enum { TABLE_BYTES_MAX = 1 << 20, ID_MAX = INT32_MAX };

/* A table that is not there is empty. */
static int table_read(const char *rootfs, const char *path, struct buf *out, struct err *err)
{
    struct err failure = {0};
    int code = untrusted_read(rootfs, path, UNTRUSTED_IN_ROOT, TABLE_BYTES_MAX, out, &failure);
    if (code == 0 || code == ERR_NOT_FOUND)
        return 0;
    return err_fail(err, code, "", "the image's users: %s", failure.text);
}

static bool id_of(struct text text, uint32_t *id)
{
    int64_t value;
    if (!text_to_int64(text, &value) || value < 0 || value > ID_MAX)
        return false;
    *id = (uint32_t)value;
    return true;
}

/* name:password:uid:gid:comment:home:shell */
static bool passwd_find(struct text table, struct text name, bool is_number, struct user *user,
                        struct text *login)
{
    while (table.at) {
        struct text line = text_cut(&table, '\n');
        struct text field[6];
        for (int i = 0; i < 6; i++)
            field[i] = text_cut(&line, ':');
        uint32_t uid, gid;
        if (!id_of(field[2], &uid) || !id_of(field[3], &gid))
            continue;
        if (is_number ? uid != user->uid : !text_equal(field[0], name))
            continue;
        user->uid = uid;
        user->gid = gid;
        *login = field[0];
        if (field[5].length && field[5].at[0] == '/')
            snprintf(user->home, sizeof user->home, "%.*s", TEXT_ARG(field[5]));
        return true;
    }
    return false;
}

static bool list_has(struct text list, struct text name)
{
    while (list.at)
        if (text_equal(text_cut(&list, ','), name))
            return true;
    return false;
}

/* name:password:gid:member,member */
static bool group_find(struct text table, struct text name, uint32_t *gid)
{
    while (table.at) {
        struct text line = text_cut(&table, '\n');
        struct text found = text_cut(&line, ':');
        text_cut(&line, ':');
        if (text_equal(found, name) && id_of(text_cut(&line, ':'), gid))
            return true;
    }
    return false;
}

static void groups_add(struct text table, struct text login, struct user *user)
{
    while (table.at && login.length) {
        struct text line = text_cut(&table, '\n');
        uint32_t gid;
        text_cut(&line, ':');
        text_cut(&line, ':');
        if (id_of(text_cut(&line, ':'), &gid) && list_has(line, login) && gid != user->gid &&
            user->group_count < USER_GROUPS_MAX)
            user->groups[user->group_count++] = gid;
    }
}

static int tables_use(struct text passwd, struct text groups, const char *wanted, struct user *user,
                      struct err *err)
{
    struct text group = text_of(wanted[0] ? wanted : "0"), login = {NULL, 0};
    struct text name = text_cut(&group, ':');
    bool is_number = id_of(name, &user->uid);
    if (!passwd_find(passwd, name, is_number, user, &login) && !is_number)
        return err_fail(err, ERR_NOT_FOUND, "", "the image has no user \"%.*s\"", TEXT_ARG(name));
    if (group.at && group.length) {
        if (!id_of(group, &user->gid) && !group_find(groups, group, &user->gid))
            return err_fail(err, ERR_NOT_FOUND, "", "the image has no group \"%.*s\"",
                            TEXT_ARG(group));
    } else {
        groups_add(groups, login, user);
    }
    return 0;
}

int user_find(const char *rootfs, const char *wanted, struct user *user, struct err *err)
{
    cleanup_buf struct buf passwd = BUF_INIT, groups = BUF_INIT;
    memset(user, 0, sizeof *user);
    snprintf(user->home, sizeof user->home, "/");
    int code = table_read(rootfs, "/etc/passwd", &passwd, err);
    if (code == 0)
        code = table_read(rootfs, "/etc/group", &groups, err);
    if (code == 0)
        code = tables_use(buf_as_text(&passwd), buf_as_text(&groups), wanted, user, err);
    return code;
}
