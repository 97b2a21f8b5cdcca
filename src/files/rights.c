#include "files/rights.h"
#include <assert.h>

enum { STICKY = 01000 };

static uint32_t root_as(uint32_t owner, uint32_t nobody)
{
    return owner ? owner : nobody;
}

static bool has_task(uint32_t id, uint32_t owner, const struct files_view *view)
{
    if (view->is_squashed)
        return id == root_as(owner, view->nobody) || (id > 0 && id < FILES_IDS);
    return id == owner || id < FILES_IDS;
}

static bool is_of_tasks(const struct files_view *view, const struct files_node *node)
{
    return has_task(node->user, view->user, view) && has_task(node->group, view->group, view);
}

bool files_may(const struct files_view *view, const struct files_node *node, unsigned wishes)
{
    assert(wishes && wishes <= (FILES_READ | FILES_WRITE | FILES_EXECUTE));
    return is_of_tasks(view, node) || (node->mode & wishes) == wishes;
}

/* In a sticky folder only the owner of the folder, or of the file, may: the latter may be exchanged
 * before the name is taken out, and is not looked at. */
bool files_may_unlink(const struct files_view *view, const struct files_node *folder)
{
    if (is_of_tasks(view, folder))
        return true;
    return !(folder->mode & STICKY) && files_may(view, folder, FILES_WRITE | FILES_EXECUTE);
}

struct files_owner files_writer(const struct files_view *view)
{
    if (!view->is_squashed)
        return (struct files_owner){0, 0};
    return (struct files_owner){root_as(view->user, view->nobody),
                                root_as(view->group, view->nobody)};
}
