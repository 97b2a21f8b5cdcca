#include "openpai_world.h"
#include "unit.h"

int openpai_world_make(void **state)
{
    static struct openpai_world world;
    world = (struct openpai_world){.input = {.folder = "/new"}};
    arena_init(&world.arena);
    problems_init(&world.problems, &world.arena);
    *state = &world;
    return 0;
}

int openpai_world_free(void **state)
{
    struct openpai_world *world = *state;
    openpai_output_release(&world->output);
    problems_release(&world->problems);
    arena_release(&world->arena);
    return 0;
}

const struct doc *openpai_world_read(struct openpai_world *world, const char *yaml)
{
    const struct doc *doc = doc_parse(text_of(yaml), DOC_YAML, &world->arena, &world->problems);
    assert_int_equal(world->problems.error_count, 0);
    return doc;
}

void openpai_world_import(struct openpai_world *world, const char *services)
{
    openpai_output_release(&world->output);
    world->input.services = openpai_world_read(world, services);
    openpai_import(&world->input, &world->arena, &world->output);
}
