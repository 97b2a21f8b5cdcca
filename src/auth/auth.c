#include "auth/auth.h"
#include "base/err.h"
#include <assert.h>
#include <string.h>

/* What gives a right: any of these. */
enum {
    BY_ACCOUNT = 1,      /* every caller who is known */
    BY_OWNER = 2,        /* who owns the subject */
    BY_ADMIN = 4,        /* an admin of the platform */
    BY_GRANT = 8,        /* who was granted the subject's virtual cluster */
    BY_OPEN_OUTPUT = 16, /* the operator opened it to everybody */
    BY_OPEN_CONFIG = 32,
};

static const struct {
    const char *name;
    unsigned given;
    bool is_closed_to_applications;
} rights[AUTH_RIGHT_COUNT] = {
    [AUTH_CALL] = {"auth.call", BY_ACCOUNT, false},
    [AUTH_SESSION] = {"auth.session", BY_ACCOUNT, true},
    [AUTH_ADMINISTER] = {"auth.administer", BY_ADMIN, false},
    [AUTH_SUBMIT_AS] = {"auth.submit-as", BY_OWNER, false},
    [AUTH_CHANGE_JOB] = {"auth.change-job", BY_OWNER | BY_ADMIN, false},
    [AUTH_READ_OUTPUT] = {"auth.read-output", BY_OWNER | BY_ADMIN | BY_OPEN_OUTPUT, false},
    [AUTH_READ_CONFIG] = {"auth.read-config", BY_OWNER | BY_ADMIN | BY_OPEN_CONFIG, false},
    [AUTH_USE_CLUSTER] = {"auth.use-cluster", BY_ADMIN | BY_GRANT, false},
    [AUTH_REVOKE] = {"auth.revoke", BY_OWNER, true},
};

const char *auth_right_name(enum auth_right right)
{
    assert((unsigned)right < AUTH_RIGHT_COUNT);
    return rights[right].name;
}

static bool is_granted(const struct auth_caller *caller, const char *cluster)
{
    if (strcmp(cluster, "default") == 0)
        return true;
    for (size_t i = 0; i < caller->cluster_count; i++)
        if (strcmp(caller->clusters[i], cluster) == 0)
            return true;
    return false;
}

static bool is_given(const struct auth_caller *caller, unsigned given,
                     const struct auth_subject *subject)
{
    if (given & BY_ACCOUNT)
        return true;
    if ((given & BY_ADMIN) && caller->is_admin)
        return true;
    if ((given & BY_OWNER) && strcmp(subject->owner, caller->user) == 0)
        return true;
    if ((given & BY_GRANT) && is_granted(caller, subject->cluster))
        return true;
    return ((given & BY_OPEN_OUTPUT) && subject->is_output_open) ||
           ((given & BY_OPEN_CONFIG) && subject->is_config_open);
}

/* The sentence of a refusal. */
static int refuse(const struct auth_caller *caller, enum auth_right right,
                  const struct auth_subject *subject, struct err *err)
{
    switch (right) {
    case AUTH_CALL: /* everybody has it */
    case AUTH_SESSION:
        break;
    case AUTH_ADMINISTER:
        return err_fail(err, ERR_FORBIDDEN, "", "only an admin may do this");
    case AUTH_SUBMIT_AS:
        return err_fail(err, ERR_FORBIDDEN, "", "jobs can only be submitted as yourself, %s",
                        caller->user);
    case AUTH_CHANGE_JOB:
    case AUTH_READ_OUTPUT:
    case AUTH_READ_CONFIG:
        return err_fail(err, ERR_FORBIDDEN, "", "%s is not the owner of job %s~%s", caller->user,
                        subject->owner, subject->name);
    case AUTH_USE_CLUSTER:
        return err_fail(err, ERR_FORBIDDEN, "defaults.virtualCluster",
                        "%s may not use virtual cluster %.100s", caller->user, subject->cluster);
    case AUTH_REVOKE:
        return err_fail(err, ERR_FORBIDDEN, "", "the token is not yours");
    }
    assert(!"a right that everybody has is not refused");
    return ERR_FORBIDDEN;
}

int auth_check(const struct auth_caller *caller, enum auth_right right,
               const struct auth_subject *subject, struct err *err)
{
    static const struct auth_subject nothing = {0};
    assert((unsigned)right < AUTH_RIGHT_COUNT);
    if (!subject)
        subject = &nothing;
    assert(!(rights[right].given & BY_OWNER) || subject->owner);
    assert(!(rights[right].given & BY_GRANT) || subject->cluster);
    if (!caller->user[0])
        return err_fail(err, ERR_UNAUTHORIZED, "", "log in first: this needs a token");
    if (rights[right].is_closed_to_applications && caller->is_application)
        return err_fail(err, ERR_FORBIDDEN, "", "an application token may not do this");
    if (is_given(caller, rights[right].given, subject))
        return 0;
    return refuse(caller, right, subject, err);
}
