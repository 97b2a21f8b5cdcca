/* Job files of format 1 against vectors: accepted or not, where it is wrong, and the defaults.
 *
 * usage: vector-spec [--deviations FILE] FILE…
 * Prints `ok ID` or `FAIL ID: why` for each vector and a last line with the counts; exit 0 when
 * none failed, 1 when one did, 2 when a file cannot be read. The expectations of the newest era of
 * each vector count; --deviations names the vectors that are decided otherwise on purpose.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "doc/doc.h"
#include "spec/spec.h"

static const char *const eras[] = {"0.14", "0.7", "0.4"}; /* newest first */

struct run {
    struct arena arena;
    const struct doc *deviations;
    unsigned ok, failed;
};

static const struct doc *file_read(struct run *run, const char *path)
{
    FILE *file = fopen(path, "rb");
    struct buf text = BUF_INIT;
    struct problems problems;
    char block[4096];
    size_t length;
    problems_init(&problems, &run->arena);
    while (file && (length = fread(block, 1, sizeof block, file)) > 0)
        buf_add(&text, block, length);
    if (!file || ferror(file)) {
        perror(path);
        exit(2);
    }
    fclose(file);
    const struct doc *doc = doc_parse(buf_as_text(&text), DOC_JSON, &run->arena, &problems);
    if (problems.error_count) {
        struct buf report = BUF_INIT;
        problems_print(&problems, path, &report);
        fputs(buf_cstr(&report), stderr);
        exit(2);
    }
    buf_release(&text);
    problems_release(&problems);
    return doc;
}

static void say(struct run *run, bool is_ok, const char *id, const char *why)
{
    if (is_ok)
        printf("ok %s\n", id);
    else
        printf("FAIL %s: %s\n", id, why);
    *(is_ok ? &run->ok : &run->failed) += 1;
}

static const struct doc *deviation_find(const struct run *run, struct text id)
{
    const struct doc *list = doc_get(run->deviations, "deviations");
    for (size_t i = 0; i < doc_count(list); i++)
        if (text_equal(doc_get_text(list->as.list.items[i], "id", ""), id))
            return list->as.list.items[i];
    return NULL;
}

static const struct doc *newest(const struct doc *by_era)
{
    for (size_t i = 0; i < sizeof eras / sizeof eras[0]; i++)
        if (doc_get(by_era, eras[i]))
            return doc_get(by_era, eras[i]);
    return NULL;
}

/* `taskRoles[0].command` as the vectors write it: `taskRoles.0.command`. */
static bool is_at(const char *path, struct text wanted)
{
    size_t i = 0;
    for (; *path && i < wanted.length; path++) {
        if (*path == ']')
            continue;
        if ((*path == '[' ? '.' : *path) != wanted.at[i++])
            return false;
    }
    return i == wanted.length && (*path == '\0' || *path == '[' || *path == '.' || *path == ']');
}

static void vector_run(struct run *run, const struct doc *vector)
{
    struct text id = doc_get_text(vector, "id", "?"),
                where = doc_get_text(vector, "rejectedPath", "");
    const struct doc *expect = newest(doc_get(vector, "expect"));
    const struct doc *deviation = deviation_find(run, id);
    bool is_expected = deviation ? doc_get_bool(deviation, "accepted", true)
                                 : expect && expect->kind == DOC_BOOL && expect->as.boolean;
    struct buf job = BUF_INIT, report = BUF_INIT;
    struct problems problems;
    struct spec_parsed parsed = {0};
    problems_init(&problems, &run->arena);
    if (!expect || !doc_get(vector, "job") || doc_to_json(doc_get(vector, "job"), 1 << 20, &job)) {
        say(run, false, id.at, "the vector has no job or no expectation");
        return;
    }
    bool is_accepted = spec_parse(buf_as_text(&job), &run->arena, &parsed, &problems) == 0;
    bool is_placed = is_expected || where.length == 0;
    for (size_t i = 0; i < problems.count && !is_placed; i++)
        is_placed = !problems.items[i].is_warning && is_at(problems.items[i].path, where);
    problems_print(&problems, "job", &report);
    if (is_accepted != is_expected)
        say(run, false, id.at, is_accepted ? "accepted" : buf_cstr(&report));
    else if (!is_placed)
        say(run, false, id.at, buf_cstr(&report));
    else
        say(run, true, id.at, "");
    spec_free(parsed.spec);
    buf_release(&job);
    buf_release(&report);
    problems_release(&problems);
}

/* A job with its defaults written out means the same as what the short one was read to. */
static void defaults_run(struct run *run, const struct doc *vectors, const struct doc *expected)
{
    const struct doc *list = doc_get(vectors, "vectors"), *minimal = NULL;
    struct buf texts[2] = {BUF_INIT, BUF_INIT}, bytes[2] = {BUF_INIT, BUF_INIT};
    for (size_t i = 0; i < doc_count(list); i++)
        if (text_is(doc_get_text(list->as.list.items[i], "id", ""), "minimal"))
            minimal = doc_get(list->as.list.items[i], "job");
    if (!minimal || doc_to_json(minimal, 1 << 20, &texts[0]) ||
        doc_to_json(expected, 1 << 20, &texts[1])) {
        say(run, false, "defaults", "the vectors have no minimal job");
        return;
    }
    for (size_t i = 0; i < 2; i++) {
        struct problems problems;
        struct spec_parsed parsed = {0};
        problems_init(&problems, &run->arena);
        if (spec_parse(buf_as_text(&texts[i]), &run->arena, &parsed, &problems) == 0)
            spec_encode(parsed.spec, &bytes[i]);
        spec_free(parsed.spec);
        problems_release(&problems);
    }
    say(run, bytes[0].length && text_equal(buf_as_text(&bytes[0]), buf_as_text(&bytes[1])),
        "defaults", "the job with its defaults written out is read otherwise");
    for (size_t i = 0; i < 2; i++) {
        buf_release(&texts[i]);
        buf_release(&bytes[i]);
    }
}

int main(int argc, char **argv)
{
    struct run run = {0};
    int first = 1;
    arena_init(&run.arena);
    if (argc > 2 && strcmp(argv[1], "--deviations") == 0) {
        run.deviations = file_read(&run, argv[2]);
        first = 3;
    }
    if (first >= argc) {
        fprintf(stderr, "usage: vector-spec [--deviations FILE] FILE...\n");
        return 2;
    }
    for (int i = first; i < argc; i++) {
        const struct doc *doc = file_read(&run, argv[i]);
        const struct doc *list = doc_get(doc, "vectors");
        const struct doc *defaults = newest(doc_get(doc, "minimalWithDefaults"));
        for (size_t j = 0; j < doc_count(list); j++)
            vector_run(&run, list->as.list.items[j]);
        if (defaults)
            defaults_run(&run, doc, defaults);
    }
    arena_release(&run.arena);
    printf("%u ok, %u failed\n", run.ok, run.failed);
    return run.failed ? 1 : 0;
}
