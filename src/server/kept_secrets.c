#include "server/kept_secrets.h"
#include "base/err.h"
#include "server/container.h"
#include "server/state.h"
#include <assert.h>

int kept_secrets_read(struct server *server, const struct service_submission *submission,
                      struct arena *scratch, struct spec_kept *kept, struct err *err)
{
    struct spec_pair *secrets = NULL;
    struct store_source source;
    assert(submission->secrets_of);
    struct store_reader *reader = server->service.reader_get(server, err);
    if (!reader)
        return ERR_UNAVAILABLE;
    int code = store_job_source(reader, submission->secrets_job, scratch, &source, err);
    server->service.reader_put(server, reader);
    if (code == ERR_NOT_FOUND)
        return err_fail(err, code, "secretsOf", "there is no job %.200s any more",
                        submission->secrets_of);
    if (code == 0)
        code = secrets_open(source.sealed, &server->keys, scratch, &secrets, &kept->count, err);
    if (code < 0)
        return code;
    kept->job = submission->secrets_of;
    kept->secrets = secrets;
    return 0;
}
