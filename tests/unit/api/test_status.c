/* Every error has its HTTP status and its name, and names of format 1 beside them. */
#include "unit.h"

#include "api/call.h"
#include "base/memory.h"

static void each_code_has_its_status(void **state)
{
    (void)state;
    static const struct {
        int code, status;
        const char *name;
    } cases[] = {
        {ERR_INVALID, 400, "InvalidParametersError"},
        {ERR_UNAUTHORIZED, 401, "UnauthorizedUserError"},
        {ERR_FORBIDDEN, 403, "ForbiddenUserError"},
        {ERR_NOT_FOUND, 404, "NoApiError"},
        {ERR_CONFLICT, 409, "ConflictError"},
        {ERR_TOO_BIG, 413, "TooBigError"},
        {ERR_BUSY, 429, "BusyError"},
        {ERR_UNAVAILABLE, 503, "UnavailableError"},
        {ERR_UNSUPPORTED, 400, "NotImplementedError"},
        {ERR_IO, 500, "UnknownError"},
        {ERR_CORRUPT, 500, "UnknownError"},
        {ERR_INTERNAL, 500, "UnknownError"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct status status = status_of(cases[i].code);
        assert_int_equal(status.http, cases[i].status);
        assert_string_equal(status.name, cases[i].name);
    }
}

static void old_names_are_kept(void **state)
{
    (void)state;
    assert_string_equal(status_old_name("NoJobError"), "JobNotFound");
    assert_string_equal(status_old_name("ConflictJobError"), "DuplicateJobSubmission");
    assert_string_equal(status_old_name("UnknownError"), "InternalServerError");
    assert_string_equal(status_old_name("BusyError"), "BusyError"); /* had none */
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(each_code_has_its_status),
    cmocka_unit_test(old_names_are_kept),
};
UNIT_FILE(tests, NULL, NULL);
