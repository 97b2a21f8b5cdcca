/* The rights that skep kube check asks for are those of the manifests. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/memory.h"
#include "doc/doc.h"
#include "kube/rights.h"
#include "sys/file.h"

enum { RIGHTS_MAX = 64, NAME_MAX_BYTES = 120, FILE_MAX = 1 << 16 };

struct rights { /* "cluster  nodes list", with the group between the two spaces */
    char names[RIGHTS_MAX][NAME_MAX_BYTES];
    size_t count;
};

static void add(struct rights *rights, bool is_of_cluster, struct text group, struct text resource,
                struct text verb)
{
    assert_true(rights->count < RIGHTS_MAX);
    snprintf(rights->names[rights->count++], NAME_MAX_BYTES, "%s %.*s %.*s %.*s",
             is_of_cluster ? "cluster" : "namespace", TEXT_ARG(group), TEXT_ARG(resource),
             TEXT_ARG(verb));
}

static bool has(const struct rights *rights, const char *name)
{
    for (size_t i = 0; i < rights->count; i++)
        if (strcmp(rights->names[i], name) == 0)
            return true;
    return false;
}

static void rule_add(struct rights *rights, bool is_of_cluster, const struct doc *rule)
{
    const struct doc *groups = doc_get_list(rule, "apiGroups");
    const struct doc *resources = doc_get_list(rule, "resources");
    const struct doc *verbs = doc_get_list(rule, "verbs");
    assert_int_equal(doc_count(rule), 3); /* nothing that this test does not look at */
    for (size_t g = 0; g < doc_count(groups); g++)
        for (size_t r = 0; r < doc_count(resources); r++)
            for (size_t v = 0; v < doc_count(verbs); v++)
                add(rights, is_of_cluster, groups->as.list.items[g]->as.string,
                    resources->as.list.items[r]->as.string, verbs->as.list.items[v]->as.string);
}

static void document_add(struct rights *rights, struct text source, struct arena *arena)
{
    cleanup_problems struct problems problems;
    problems_init(&problems, arena);
    const struct doc *doc = doc_parse(source, DOC_YAML, arena, &problems);
    assert_int_equal(problems.error_count, 0);
    const struct text kind = doc_get_text(doc, "kind", "");
    if (!text_is(kind, "Role") && !text_is(kind, "ClusterRole"))
        return;
    const struct doc *rules = doc_get_list(doc, "rules");
    for (size_t i = 0; i < doc_count(rules); i++)
        rule_add(rights, text_is(kind, "ClusterRole"), rules->as.list.items[i]);
}

static void manifest_read(struct rights *rights, const char *path, struct arena *arena)
{
    cleanup_buf struct buf bytes = BUF_INIT;
    assert_int_equal(file_read(path, FILE_MAX, &bytes, NULL), 0);
    const char *at = buf_cstr(&bytes);
    while (at) {
        const char *end = strstr(at, "\n---\n");
        const size_t length = end ? (size_t)(end - at) : strlen(at);
        document_add(rights, text_of(arena_copy(arena, (struct text){at, length})), arena);
        at = end ? end + strlen("\n---\n") : NULL;
    }
}

static void table_read(struct rights *rights, bool is_for_claims)
{
    for (size_t i = 0; i < KUBE_RIGHT_COUNT; i++) {
        const struct kube_right *right = &KUBE_RIGHTS[i];
        if (right->is_for_claims != is_for_claims)
            continue;
        struct text verbs = text_of(right->verbs);
        while (verbs.length > 0)
            add(rights, right->is_of_cluster, text_of(right->group), text_of(right->resource),
                text_cut(&verbs, ' '));
    }
}

static void each_has(const struct rights *all, const struct rights *in, const char *where)
{
    for (size_t i = 0; i < all->count; i++)
        if (!has(in, all->names[i]))
            fail_msg("%s lacks: %s", where, all->names[i]);
}

static void compare(const char *path, bool is_for_claims)
{
    static struct rights manifest, table;
    cleanup_arena struct arena arena;
    arena_init(&arena);
    manifest.count = table.count = 0;
    manifest_read(&manifest, path, &arena);
    table_read(&table, is_for_claims);
    assert_true(manifest.count > 0);
    each_has(&manifest, &table, "src/kube/rights.c");
    each_has(&table, &manifest, path);
}

static void the_table_is_the_manifest(void **state)
{
    (void)state;
    compare(RIGHTS_FOLDER "rights.yaml", false);
    compare(RIGHTS_FOLDER "rights-dra.yaml", true);
}

static const struct CMUnitTest tests[] = {
    cmocka_unit_test(the_table_is_the_manifest),
};

UNIT_FILE(tests, NULL, NULL);
