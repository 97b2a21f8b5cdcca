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
    BY_GROUP = 64,    /* an admin of the subject's group */
    BY_STORAGE = 128, /* who was granted the subject's storage */
    BY_SHARE = 256,   /* its author shares the subject with the caller */
};

/* How much a token must be good for. */
enum rank { RANK_READ, RANK_SUBMIT, RANK_USUAL, RANK_ADMIN, RANK_SESSION };

static const struct {
    const char *name;
    unsigned given;
    enum rank rank;
} rights[AUTH_RIGHT_COUNT] = {
    [AUTH_CALL] = {"auth.call", BY_ACCOUNT, RANK_READ},
    [AUTH_SESSION] = {"auth.session", BY_ACCOUNT, RANK_SESSION},
    [AUTH_ADMINISTER] = {"auth.administer", BY_ADMIN, RANK_USUAL},
    [AUTH_MANAGE] = {"auth.manage", BY_ADMIN, RANK_ADMIN},
    [AUTH_MANAGE_GROUP] = {"auth.manage-group", BY_ADMIN | BY_GROUP, RANK_ADMIN},
    [AUTH_READ_MEMBERS] = {"auth.read-members", BY_ADMIN | BY_GROUP, RANK_USUAL},
    [AUTH_EDIT_USER] = {"auth.edit-user", BY_OWNER | BY_ADMIN, RANK_ADMIN},
    [AUTH_READ_PROFILE] = {"auth.read-profile", BY_OWNER | BY_ADMIN, RANK_READ},
    [AUTH_SUBMIT] = {"auth.submit", BY_ACCOUNT, RANK_SUBMIT},
    [AUTH_SUBMIT_AS] = {"auth.submit-as", BY_OWNER, RANK_SUBMIT},
    [AUTH_CHANGE_JOB] = {"auth.change-job", BY_OWNER | BY_ADMIN, RANK_SUBMIT},
    [AUTH_ENTER_JOB] = {"auth.enter-job", BY_OWNER | BY_ADMIN, RANK_SUBMIT},
    [AUTH_READ_OUTPUT] = {"auth.read-output", BY_OWNER | BY_ADMIN | BY_OPEN_OUTPUT, RANK_READ},
    [AUTH_READ_CONFIG] = {"auth.read-config", BY_OWNER | BY_ADMIN | BY_OPEN_CONFIG, RANK_READ},
    [AUTH_USE_CLUSTER] = {"auth.use-cluster", BY_ADMIN | BY_GRANT, RANK_SUBMIT},
    [AUTH_USE_STORAGE] = {"auth.use-storage", BY_ADMIN | BY_STORAGE, RANK_READ},
    [AUTH_REVOKE] = {"auth.revoke", BY_OWNER, RANK_SESSION},
    [AUTH_READ_TEMPLATE] = {"auth.read-template", BY_OWNER | BY_ADMIN | BY_SHARE, RANK_READ},
    [AUTH_EDIT_TEMPLATE] = {"auth.edit-template", BY_OWNER | BY_ADMIN, RANK_SUBMIT},
    /* no admin: a job of their own could print what it was given */
    [AUTH_REUSE_SECRETS] = {"auth.reuse-secrets", BY_OWNER, RANK_SUBMIT},
    [AUTH_READ_REQUEST] = {"auth.read-request", BY_OWNER | BY_ADMIN, RANK_READ},
    [AUTH_WITHDRAW] = {"auth.withdraw", BY_OWNER, RANK_SUBMIT},
};

static const struct {
    const char *name;
    enum rank rank;
} scopes[AUTH_SCOPE_COUNT] = {
    [AUTH_SCOPE_USUAL] = {"usual", RANK_USUAL},
    [AUTH_SCOPE_READ] = {"read", RANK_READ},
    [AUTH_SCOPE_SUBMIT] = {"submit", RANK_SUBMIT},
    [AUTH_SCOPE_ADMIN] = {"admin", RANK_ADMIN},
};

const char *auth_right_name(enum auth_right right)
{
    assert((unsigned)right < AUTH_RIGHT_COUNT);
    return rights[right].name;
}

const char *auth_scope_name(enum auth_scope scope)
{
    assert((unsigned)scope < AUTH_SCOPE_COUNT);
    return scopes[scope].name;
}

static enum rank rank_of(const struct auth_caller *caller)
{
    assert((unsigned)caller->scope < AUTH_SCOPE_COUNT);
    return caller->is_application ? scopes[caller->scope].rank : RANK_SESSION;
}

/* Names of a few hundred grants are too many to compare with each of them. */
static bool is_among(const char *name, const char *const *names, size_t count)
{
    size_t low = 0, high = count;
    assert(count == 0 || strcmp(names[0], names[count - 1]) <= 0);
    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const int order = strcmp(names[middle], name);
        if (order == 0)
            return true;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

static bool is_granted(const struct auth_caller *caller, const char *cluster)
{
    return strcmp(cluster, "default") == 0 ||
           is_among(cluster, caller->clusters, caller->cluster_count);
}

/* A token of a small scope carries nothing of what its user may do as an admin. */
static bool is_given(const struct auth_caller *caller, unsigned given,
                     const struct auth_subject *subject)
{
    if (given & BY_ACCOUNT)
        return true;
    if ((given & BY_ADMIN) && caller->is_admin && rank_of(caller) >= RANK_USUAL)
        return true;
    if ((given & BY_OWNER) && strcmp(subject->owner, caller->user) == 0)
        return true;
    if ((given & BY_GRANT) && is_granted(caller, subject->cluster))
        return true;
    if ((given & BY_GROUP) && is_among(subject->group, caller->groups, caller->group_count))
        return true;
    if ((given & BY_STORAGE) && is_among(subject->storage, caller->storages, caller->storage_count))
        return true;
    if ((given & BY_SHARE) && subject->is_shared)
        return true;
    return ((given & BY_OPEN_OUTPUT) && subject->is_output_open) ||
           ((given & BY_OPEN_CONFIG) && subject->is_config_open);
}

/* The token is too small. The first sentence is OpenPAI's, which clients compare. */
static int refuse_scope(const struct auth_caller *caller, struct err *err)
{
    if (caller->scope == AUTH_SCOPE_USUAL)
        return err_fail(err, ERR_FORBIDDEN, "",
                        "Applications are not allowed to do this operation.");
    return err_fail(err, ERR_FORBIDDEN, "", "the scope of this token, %s, does not allow this",
                    auth_scope_name(caller->scope));
}

/* The sentence of a refusal. That to a user who is no admin is OpenPAI's: clients compare it. */
static int refuse(const struct auth_caller *caller, enum auth_right right,
                  const struct auth_subject *subject, struct err *err)
{
    switch (right) {
    case AUTH_CALL: /* everybody has it */
    case AUTH_SESSION:
    case AUTH_SUBMIT:
        break;
    case AUTH_ADMINISTER:
    case AUTH_MANAGE:
    case AUTH_MANAGE_GROUP:
    case AUTH_READ_MEMBERS:
        return err_fail(err, ERR_FORBIDDEN, "", "Non-admin is not allow to do this operation.");
    case AUTH_EDIT_USER:
    case AUTH_READ_PROFILE:
        return err_fail(err, ERR_FORBIDDEN, "", "%s may not see or change the profile of %s",
                        caller->user, subject->owner);
    case AUTH_SUBMIT_AS:
        return err_fail(err, ERR_FORBIDDEN, "", "jobs can only be submitted as yourself, %s",
                        caller->user);
    case AUTH_CHANGE_JOB:
    case AUTH_ENTER_JOB:
    case AUTH_READ_OUTPUT:
    case AUTH_READ_CONFIG:
        return err_fail(err, ERR_FORBIDDEN, "", "%s is not the owner of job %s~%s", caller->user,
                        subject->owner, subject->name);
    case AUTH_USE_CLUSTER:
        return err_fail(err, ERR_FORBIDDEN, "defaults.virtualCluster",
                        "User %s is not allowed to do operation in %.100s", caller->user,
                        subject->cluster);
    case AUTH_USE_STORAGE:
        return err_fail(err, ERR_FORBIDDEN, "extras.storages",
                        "User %s is not allowed to access storage %.100s.", caller->user,
                        subject->storage);
    case AUTH_REVOKE:
        return err_fail(err, ERR_FORBIDDEN, "", "the token is not yours");
    case AUTH_READ_TEMPLATE:
        return err_fail(err, ERR_FORBIDDEN, "", "%s does not share the template %s with %s",
                        subject->owner, subject->name, caller->user);
    case AUTH_EDIT_TEMPLATE:
        return err_fail(err, ERR_FORBIDDEN, "", "%s is not the author of the template %s~%s",
                        caller->user, subject->owner, subject->name);
    case AUTH_REUSE_SECRETS:
        return err_fail(err, ERR_FORBIDDEN, "secretsOf",
                        "the secrets of job %s~%s are for jobs of %s alone: who gave them to a job "
                        "of their own, an admin too, could read them there",
                        subject->owner, subject->name, subject->owner);
    case AUTH_READ_REQUEST:
    case AUTH_WITHDRAW:
        return err_fail(err, ERR_FORBIDDEN, "", "the request is not that of %s", caller->user);
    }
    assert(false && "a right that everybody has is not refused");
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
    assert(!(rights[right].given & BY_GROUP) || subject->group);
    assert(!(rights[right].given & BY_STORAGE) || subject->storage);
    if (!caller->user[0])
        return err_fail(err, ERR_UNAUTHORIZED, "", "log in first: this needs a token");
    if (rank_of(caller) < rights[right].rank)
        return refuse_scope(caller, err);
    if (is_given(caller, rights[right].given, subject))
        return 0;
    return refuse(caller, right, subject, err);
}
