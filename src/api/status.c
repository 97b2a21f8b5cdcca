#include "api/call.h"
#include "base/memory.h"

struct status status_of(int code)
{
    switch (code) {
    case ERR_INVALID:
        return (struct status){400, "InvalidParametersError"};
    case ERR_UNAUTHORIZED:
        return (struct status){401, "UnauthorizedUserError"};
    case ERR_FORBIDDEN:
        return (struct status){403, "ForbiddenUserError"};
    case ERR_NOT_FOUND:
        return (struct status){404, "NoApiError"};
    case ERR_CONFLICT:
        return (struct status){409, "ConflictError"};
    case ERR_TOO_BIG:
        return (struct status){413, "TooBigError"};
    case ERR_BUSY:
        return (struct status){429, "BusyError"};
    case ERR_QUOTA:
        return (struct status){429, "QuotaExceededError"};
    case ERR_UNAVAILABLE:
        return (struct status){503, "UnavailableError"};
    case ERR_UNSUPPORTED:
        return (struct status){400, "NotImplementedError"};
    default: /* ERR_IO, ERR_CORRUPT, ERR_INTERNAL: ours */
        return (struct status){500, "UnknownError"};
    }
}

const char *status_old_name(const char *name)
{
    static const struct {
        const char *name, *old;
    } OLD[] = {
        {"InvalidParametersError", "ParameterValidationError"},
        {"InvalidProtocolError", "ParameterValidationError"},
        {"UnauthorizedUserError", "NotAuthorized"},
        {"ForbiddenUserError", "NotAuthorized"},
        {"IncorrectPasswordError", "AuthenticationFailed"},
        {"NoJobError", "JobNotFound"},
        {"ConflictJobError", "DuplicateJobSubmission"},
        {"NoJobConfigError", "ConfigFileNotFound"},
        {"NoJobSshInfoError", "SshInfoNotFound"},
        {"NoVirtualClusterError", "VirtualClusterNotFound"},
        {"ConflictUserError", "UpdateFailed"},
        {"RemoveAdminError", "RemoveFailed"},
        {"UnknownError", "InternalServerError"},
    };
    for (size_t i = 0; i < COUNT_OF(OLD); i++)
        if (strcmp(OLD[i].name, name) == 0)
            return OLD[i].old;
    return name;
}
