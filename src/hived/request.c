/* request.c — what of a request can be checked without placing it. */
#include "base/err.h"
#include "hived/state.h"
#include "model/reason.h"
#include <string.h>

static int check_members(const struct hived_request *request, struct err *err)
{
    uint64_t pods = 0, leaves = 0;
    bool is_known = request->leaves == 0;
    if (request->member_count < 1 || request->member_count > HIVED_MEMBERS_MAX)
        return err_fail(err, ERR_INVALID, "affinityGroup.members", "must have 1 to %d members",
                        HIVED_MEMBERS_MAX);
    for (uint32_t i = 0; i < request->member_count; i++) {
        const struct hived_member *member = &request->members[i];
        if (member->pods < 1 || member->leaves < 1)
            return err_fail(err, ERR_INVALID, "affinityGroup.members",
                            "podNumber and leafCellNumber must be at least 1");
        pods += member->pods;
        leaves += (uint64_t)member->pods * member->leaves;
        is_known |= member->leaves == request->leaves;
    }
    if (pods > HIVED_GANG_PODS_MAX || leaves > HIVED_LEAVES_MAX)
        return err_fail(err, ERR_INVALID, "affinityGroup.members",
                        "a gang has at most %d pods and %d leaves", HIVED_GANG_PODS_MAX,
                        HIVED_LEAVES_MAX);
    if (!is_known)
        return err_fail(err, ERR_INVALID, "leafCellNumber",
                        "no member of the gang has %u leaves a pod", request->leaves);
    return 0;
}

int request_check(const struct hived_request *request, struct err *err)
{
    if (!request->virtual_cluster || !*request->virtual_cluster)
        return err_fail(err, ERR_INVALID, "virtualCluster", "is needed");
    if (request->priority < HIVED_PRIORITY_OPPO || request->priority > HIVED_PRIORITY_MAX)
        return err_fail(err, ERR_INVALID, "priority", "must be from %d to %d, got %d",
                        HIVED_PRIORITY_OPPO, HIVED_PRIORITY_MAX, request->priority);
    if (!request->group || !*request->group)
        return err_fail(err, ERR_INVALID, "affinityGroup.name", "is needed");
    return check_members(request, err);
}

int request_type(const struct hived *h, struct text name, uint32_t *type, struct err *err)
{
    *type = NONE;
    for (uint32_t i = 0; i < h->chain_count && *type == NONE; i++)
        if (text_is(name, h->config->types[h->chains[i].leaf_type].name))
            *type = h->chains[i].leaf_type;
    if (*type == NONE)
        return err_fail(err, ERR_INVALID, "leafCellType", REASON_NO_LEAF_TYPE,
                        (int)(name.length > 100 ? 100 : name.length), name.at);
    return 0;
}

uint32_t request_pin(const struct hived *h, const char *id)
{
    for (uint32_t i = 0; i < h->pin_count; i++)
        if (!strcmp(h->pins[i].id, id))
            return i;
    return NONE;
}

int request_within(const struct hived *h, const char *type, struct err *err)
{
    if (!type || !*type || hived_config_type(h->config, type) != HIVED_NONE)
        return 0;
    return err_fail(err, ERR_INVALID, "withinOneCell", REASON_NO_CELL_TYPE, type);
}
