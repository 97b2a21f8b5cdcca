#include "pod_request.h"

#include <string.h>

#include "base/arena.h"
#include "base/err.h"
#include "doc/doc.h"
#include "hived/state.h"

static const struct doc *get_either(const struct doc *doc, const char *key, const char *old)
{
    const struct doc *value = doc_get(doc, key);
    if (!value && old)
        value = doc_get(doc, old);
    return value && value->kind != DOC_NULL ? value : NULL;
}

static int read_text(const struct doc *doc, const char *key, const char *old, struct arena *arena,
                     const char **text, struct err *err)
{
    const struct doc *value = get_either(doc, key, old);
    *text = "";
    if (!value)
        return 0;
    if (value->kind == DOC_LIST || value->kind == DOC_MAP)
        return err_fail(err, ERR_INVALID, key, "must be a string, is %s",
                        doc_kind_name(value->kind));
    struct text source = value->kind == DOC_STRING ? value->as.string : value->source;
    if (source.length > HIVED_NAME_MAX || memchr(source.at, 0, source.length))
        return err_fail(err, ERR_INVALID, key, "must have at most %d characters", HIVED_NAME_MAX);
    *text = arena_copy(arena, source);
    return 0;
}

static int read_int(const struct doc *doc, const char *key, const char *old, int32_t *number,
                    struct err *err)
{
    const struct doc *value = get_either(doc, key, old);
    if (!value)
        return 0;
    if (value->kind != DOC_INT || value->as.integer < INT32_MIN || value->as.integer > INT32_MAX)
        return err_fail(err, ERR_INVALID, key, "must be an integer");
    *number = (int32_t)value->as.integer;
    return 0;
}

static int read_flag(const struct doc *doc, const char *key, bool *flag, struct err *err)
{
    const struct doc *value = get_either(doc, key, NULL);
    if (!value)
        return 0;
    if (value->kind != DOC_BOOL)
        return err_fail(err, ERR_INVALID, key, "must be true or false");
    *flag = value->as.boolean;
    return 0;
}

static int read_member(const struct doc *doc, struct arena *arena, struct hived_member *member,
                       struct err *err)
{
    int32_t pods = 0, leaves = 0;
    int code = read_int(doc, "podNumber", NULL, &pods, err);
    if (!code)
        code = read_int(doc, "leafCellNumber", "gpuNumber", &leaves, err);
    if (!code)
        code = read_text(doc, "withinOneCell", NULL, arena, &member->within_one_cell, err);
    if (!code && (pods < 1 || leaves < 1))
        code = err_fail(err, ERR_INVALID, "affinityGroup.members",
                        "podNumber and leafCellNumber must be at least 1");
    member->pods = (uint32_t)pods;
    member->leaves = (uint32_t)leaves;
    return code;
}

static int read_group(const struct doc *group, struct arena *arena, struct hived_request *request,
                      struct err *err)
{
    int code = read_text(group, "name", NULL, arena, &request->group, err);
    if (!code)
        code = read_text(group, "withinOneCell", NULL, arena, &request->within_one_cell, err);
    const struct doc *list = doc_get(group, "members");
    if (code)
        return code;
    if (!list || list->kind != DOC_LIST || list->as.list.count > HIVED_MEMBERS_MAX)
        return err_fail(err, ERR_INVALID, "affinityGroup.members",
                        "must be a list of at most %d members", HIVED_MEMBERS_MAX);
    struct hived_member *members = ARENA_ARRAY(arena, struct hived_member, list->as.list.count + 1);
    for (size_t i = 0; i < list->as.list.count && !code; i++)
        code = read_member(list->as.list.items[i], arena, &members[i], err);
    request->members = members;
    request->member_count = (uint32_t)list->as.list.count;
    return code;
}

int pod_request_read(const struct doc *doc, const char *pod, struct arena *arena,
                     struct hived_request *request, struct err *err)
{
    *request = (struct hived_request){.group = arena_format(arena, "%s", pod)};
    if (!doc || doc->kind != DOC_MAP)
        return err_fail(err, ERR_INVALID, "", "the scheduling request must be a map");
    bool ignores_suggested = true;
    int32_t leaves = 0;
    int code = read_text(doc, "virtualCluster", NULL, arena, &request->virtual_cluster, err);
    if (!code)
        code = read_int(doc, "priority", NULL, &request->priority, err);
    if (!code)
        code = read_text(doc, "pinnedCellId", NULL, arena, &request->pinned_cell, err);
    if (!code)
        code = read_text(doc, "leafCellType", "gpuType", arena, &request->leaf_type, err);
    if (!code)
        code = read_int(doc, "leafCellNumber", "gpuNumber", &leaves, err);
    if (!code)
        code = read_flag(doc, "lazyPreemptionEnable", &request->is_lazy, err);
    if (!code)
        code = read_flag(doc, "ignoreK8sSuggestedNodes", &ignores_suggested, err);
    if (code)
        return code;
    if (leaves < 1)
        return err_fail(err, ERR_INVALID, "leafCellNumber", "must be at least 1");
    request->uses_suggested = !ignores_suggested;
    request->leaves = (uint32_t)leaves;
    const struct doc *group = get_either(doc, "affinityGroup", NULL);
    if (group) {
        code = read_group(group, arena, request, err);
    } else {
        struct hived_member *one = ARENA_NEW(arena, struct hived_member);
        *one = (struct hived_member){.pods = 1, .leaves = request->leaves};
        request->members = one;
        request->member_count = 1;
    }
    return code ? code : request_check(request, err);
}
