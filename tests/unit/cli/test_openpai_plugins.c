/* Plugins of OpenPAI's portal: which are carried over, and what is said of the others. */
#include "openpai_world.h"
#include "unit.h"

#include <string.h>

#include "cli/openpai_plugins.h"

static void noted(const struct openpai_world *world, enum openpai_note_kind kind, const char *path,
                  const char *says)
{
    for (size_t i = 0; i < world->output.note_count; i++) {
        const struct openpai_note *note = &world->output.notes[i];
        if (note->kind == kind && strcmp(note->path, path) == 0 && strstr(note->text, says))
            return;
    }
    fail_msg("there is no note on %s that says: %s", path, says);
}

static void those_with_an_address_are_taken(void **state)
{
    struct openpai_world *world = *state;
    openpai_world_import(world, "webportal:\n  server-port: 9286\n  plugins:\n"
                                "  - {id: market, title: Market, uri: 'https://plugins.lab/m.js', "
                                "config: {repo: a/b}}\n"
                                "  - {title: Own, uri: /scripts/plugins/own.js}\n"
                                "  - {title: Plain, uri: 'http://h/p.js?nfs=x:/y'}\n"
                                "  - {title: None}\n"
                                "  - {title: Odd, uri: 'http://h/a b'}\n"
                                "  - 7\n");
    assert_non_null(strstr(buf_cstr(&world->output.skepd),
                           "portal:\n  plugins: [{\"id\":\"market\",\"title\":\"Market\","
                           "\"uri\":\"https://plugins.lab/m.js\",\"config\":{\"repo\":\"a/b\"}},"
                           "{\"title\":\"Plain\",\"uri\":\"http://h/p.js?nfs=x:/y\"}]\n"));
    noted(world, NOTE_TAKEN, "webportal.plugins[0]", "portal.plugins");
    noted(world, NOTE_TO_DO, "webportal.plugins[1]", "/scripts/plugins/own.js is a file of");
    noted(world, NOTE_TAKEN, "webportal.plugins[2]", "scope submit");
    noted(world, NOTE_TO_DO, "webportal.plugins[3]", "no uri");
    noted(world, NOTE_TO_DO, "webportal.plugins[4]", "is no address");
    noted(world, NOTE_TO_DO, "webportal.plugins[5]", "no title");
    noted(world, NOTE_GONE, "webportal.server-port", "serves the portal itself");
}

static void too_many_or_too_large_are_not(void **state)
{
    struct openpai_world *world = *state;
    cleanup_buf struct buf text = BUF_INIT;
    buf_string(&text, "webportal: {plugins: [{title: large, uri: 'http://h/p', config: {a: '");
    for (size_t i = 0; i < 64 << 10; i++)
        buf_char(&text, 'x');
    buf_string(&text, "'}}");
    for (size_t i = 0; i < 21; i++)
        buf_format(&text, ", {title: t, uri: 'http://h/p'}");
    buf_string(&text, "]}\n");
    openpai_world_import(world, buf_cstr(&text));
    noted(world, NOTE_TO_DO, "webportal.plugins[0]", "larger than 64 KiB");
    noted(world, NOTE_TAKEN, "webportal.plugins[20]", "portal.plugins");
    noted(world, NOTE_TO_DO, "webportal.plugins[21]", "there can be 20");
}

static void without_any_there_is_no_key(void **state)
{
    struct openpai_world *world = *state;
    openpai_world_import(world, "webportal: {plugins: []}\n");
    assert_null(strstr(buf_cstr(&world->output.skepd), "portal:"));
    openpai_world_import(world, "webportal: {plugins: {a: 1}}\n");
    noted(world, NOTE_TO_DO, "webportal.plugins", "no list");
}

#define WORLD(test) cmocka_unit_test_setup_teardown(test, openpai_world_make, openpai_world_free)
static const struct CMUnitTest tests[] = {
    WORLD(those_with_an_address_are_taken),
    WORLD(too_many_or_too_large_are_not),
    WORLD(without_any_there_is_no_key),
};
UNIT_FILE(tests, NULL, NULL);
