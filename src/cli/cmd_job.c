/* submit, run, wait, stop, start, delete, release, scale, tag */
#include "base/memory.h"
#include "cli/bulk.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/job.h"
#include "cli/job_file.h"
#include "cli/print.h"
#include "cli/run_file.h"
#include "sys/clock.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* ---- submit ---- */

/* The job's story on standard error, beside its log on standard output. */
struct telling {
    struct client *client; /* of its own: one does one thing at a time */
    const char *job;
    bool is_quiet;
    int code;
};

static void *telling_run(void *context)
{
    struct telling *telling = context;
    struct wait_options options = {.is_quiet = telling->is_quiet};
    telling->code = job_wait(telling->client, telling->job, &options);
    return NULL;
}

static int follow_and_wait(struct cli *cli, const char *job, bool is_follow)
{
    struct telling telling = {
        .client = cli->client, .job = job, .is_quiet = cli_flag(cli, "quiet")};
    if (!is_follow) {
        telling_run(&telling);
        return telling.code;
    }
    pthread_t thread;
    telling.client = client_copy(cli->client);
    if (pthread_create(&thread, NULL, telling_run, &telling))
        return cli_fail(EXIT_SKEP, "cannot start a thread");
    struct log_options log = {.role = cli_value(cli, "role"),
                              .index = cli_value(cli, "index"),
                              .tail_lines = -1,
                              .since_ms = -1,
                              .is_follow = true,
                              .is_whole = true};
    if (job_log(cli->client, job, &log))
        exit(EXIT_SKEP); /* said why; the job goes on */
    pthread_join(thread, NULL);
    client_free(telling.client);
    return telling.code;
}

static void tell_end(const char *job, int code)
{
    if (code == EXIT_SKEP)
        return;
    if (code == 0)
        fprintf(stderr, "skep: job %s succeeded\n", job);
    else if (code == EXIT_STOPPED)
        fprintf(stderr, "skep: job %s was stopped\n", job);
    else if (code == EXIT_PLATFORM)
        fprintf(stderr, "skep: the platform ended job %s; see: skep describe %s\n", job, job);
    else
        fprintf(stderr, "skep: job %s failed with code %d; see: skep describe %s\n", job, code,
                job);
}

static int submit_content(struct cli *cli, const struct job_submission *submission, bool is_wait,
                          bool is_follow)
{
    struct client *client = cli_client(cli);
    if (!client)
        return EXIT_REFUSED;
    cleanup_buf struct buf name = BUF_INIT;
    bool is_quiet = cli->output == OUTPUT_TABLE && cli_flag(cli, "quiet");
    int code = job_submit(client, submission, &name);
    if (!code && cli->output != OUTPUT_TABLE && !is_wait && !is_follow) {
        json_t *json = json_pack("{s:s}", "name", buf_cstr(&name));
        if (!print_raw(cli, json))
            printf("%s\n", buf_cstr(&name));
        json_decref(json);
    } else if (!code && is_quiet) {
        printf("%s\n", buf_cstr(&name));
        fflush(stdout);
    } else if (!code) {
        fprintf(is_follow ? stderr : stdout, "submitted %s\n", buf_cstr(&name));
        fflush(stdout);
    }
    if (!code && (is_wait || is_follow)) {
        code = follow_and_wait(cli, buf_cstr(&name), is_follow);
        if (!cli_flag(cli, "quiet"))
            tell_end(buf_cstr(&name), code);
    }
    return code;
}

int run_submit(struct cli *cli)
{
    cleanup_buf struct buf content = BUF_INIT;
    int code = file_content(cli->arguments[0], &content);
    if (!code)
        code = submit_content(cli,
                              &(struct job_submission){.file = cli->arguments[0],
                                                       .content = buf_as_text(&content),
                                                       .secrets_of = cli_value(cli, "secrets-of")},
                              cli_flag(cli, "wait"), cli_flag(cli, "follow"));
    return code;
}

/* ---- clone ---- */

int run_clone(struct cli *cli)
{
    const char *job = cli->arguments[0];
    struct client *client = cli_client(cli);
    if (!client)
        return EXIT_REFUSED;
    cleanup_buf struct buf path = BUF_INIT, file = BUF_INIT;
    cleanup_client_reply struct client_reply reply;
    job_path(&path, job, "/config");
    client_ask(client, &(struct client_request){.method = "GET", .path = buf_cstr(&path)}, &reply);
    if (reply.status != 200)
        return client_explain(client, &reply, NULL);
    if (!job_file_rename(buf_as_text(&reply.body), cli_value(cli, "name"), &file))
        return cli_fail(EXIT_REFUSED, "the file of job %s has no name that could be changed", job);
    return submit_content(
        cli,
        &(struct job_submission){.file = job, .content = buf_as_text(&file), .secrets_of = job},
        cli_flag(cli, "wait"), cli_flag(cli, "follow"));
}

/* ---- run ---- */

int run_run(struct cli *cli)
{
    cleanup_buf struct buf file = BUF_INIT;
    int code = run_file(cli, &file);
    if (!code && cli_flag(cli, "print"))
        print_flush(&file);
    else if (!code)
        code = submit_content(
            cli, &(struct job_submission){.file = "job", .content = buf_as_text(&file)}, false,
            !cli_flag(cli, "detach"));
    return code;
}

/* ---- wait ---- */

int run_wait(struct cli *cli)
{
    struct client *client = cli_client(cli);
    struct wait_options options = {.is_quiet = cli_flag(cli, "quiet")};
    if (!client)
        return EXIT_SKEP;
    int code = cli_number(cli, "timeout", 1, 1L << 40, 0, &options.timeout_s);
    int64_t end_ms = clock_monotonic_ms() + options.timeout_s * 1000;
    int first = code;
    bool goes_on = !code;
    for (int i = 0; i < cli->argument_count && goes_on; i++) {
        if (options.timeout_s && i) {
            int64_t left_ms = end_ms - clock_monotonic_ms();
            options.timeout_s = left_ms > 1000 ? (long)(left_ms / 1000) : 1;
        }
        code = job_wait(client, cli->arguments[i], &options);
        if (!options.is_quiet)
            tell_end(cli->arguments[i], code);
        if (!first)
            first = code;
        /* not by the code: programs may exit with 124 and 125 themselves */
        goes_on = !options.timeout_s || clock_monotonic_ms() < end_ms;
    }
    return first;
}

/* ---- changes ---- */

static int each_job(struct cli *cli, const char *method, const char *rest, const char *body,
                    const char *done)
{
    return each_argument(cli, &(struct each_call){job_path, method, rest, body, done});
}

static int jobs_change(struct cli *cli, const struct bulk_call *call, const char *method,
                       const char *rest, const char *body)
{
    int code = bulk_choice_check(cli, cli->argument_count);
    if (code)
        return code;
    return filter_is_given(cli) ? bulk_run(cli, call)
                                : each_job(cli, method, rest, body, call->done);
}

int run_stop(struct cli *cli)
{
    return jobs_change(cli, &(struct bulk_call){.action = "stop", .done = "stopping"}, "PUT",
                       "/executionType", "{\"value\":\"STOP\"}");
}

int run_start(struct cli *cli)
{
    return jobs_change(cli, &(struct bulk_call){.action = "start", .done = "starting"}, "PUT",
                       "/executionType", "{\"value\":\"START\"}");
}

int run_delete(struct cli *cli)
{
    return jobs_change(cli, &(struct bulk_call){.action = "delete", .done = "deleted"}, "DELETE",
                       "", NULL);
}

int run_release(struct cli *cli)
{
    return jobs_change(cli, &(struct bulk_call){.action = "release", .done = "released"}, "PUT",
                       "/release", "{}");
}

int run_scale(struct cli *cli)
{
    int64_t instances;
    if (!text_to_int64(text_of(cli->arguments[2]), &instances) || instances < 0)
        return cli_fail(EXIT_USAGE, "scale: the number of tasks must be a number, got '%s'",
                        cli->arguments[2]);
    cleanup_buf struct buf rest = BUF_INIT, body = BUF_INIT;
    buf_string(&rest, "/taskRoles/");
    client_encode(&rest, cli->arguments[1]);
    buf_string(&rest, "/instances");
    buf_format(&body, "{\"instances\":%lld}", (long long)instances);
    cli->argument_count = 1;
    return each_job(cli, "PUT", buf_cstr(&rest), buf_cstr(&body), "scaling");
}

int run_tag(struct cli *cli)
{
    const bool is_remove = cli_flag(cli, "remove");
    int code = bulk_choice_check(cli, cli->argument_count - 1);
    if (code)
        return code;
    if (cli->argument_count == 1)
        return bulk_run(cli, &(struct bulk_call){.action = is_remove ? "removeTag" : "addTag",
                                                 .tag = cli->arguments[0],
                                                 .done = is_remove ? "untagged" : "tagged"});
    json_t *json = json_pack("{s:s}", "value", cli->arguments[1]);
    char *body = json_dumps(json, JSON_COMPACT);
    json_decref(json);
    if (!body)
        return cli_fail(EXIT_USAGE, "a tag must be UTF-8");
    cli->argument_count = 1;
    code = each_job(cli, is_remove ? "DELETE" : "PUT", "/tag", body,
                    is_remove ? "untagged" : "tagged");
    free(body);
    return code;
}
