/* What a task of the marketplace's format runs. Its prerequisites say so themselves (0.12), or name
 * addresses that are fetched by what they look like (before). */
#include "base/buf.h"
#include "spec/read.h"

void market_lines_release(struct market_lines *lines)
{
    ARRAY_FREE(lines);
}

static void line_add(struct market_lines *lines, const struct doc *doc, struct text text)
{
    text = text_trim(text);
    if (text.length)
        *ARRAY_ADD(lines) = (struct market_line){.text = text, .doc = doc};
}

static void line_format(struct market_lines *lines, const struct doc *doc, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
static void line_format(struct market_lines *lines, const struct doc *doc, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    line_add(lines, doc, text_of(arena_vformat(lines->arena, format, args)));
    va_end(args);
}

/* A word of the shell. */
static const char *quoted(struct market_lines *lines, struct text text)
{
    cleanup_buf struct buf word = BUF_INIT;
    buf_char(&word, '\'');
    for (size_t i = 0; i < text.length; i++) {
        if (text.at[i] == '\'')
            buf_string(&word, "'\\'");
        buf_char(&word, text.at[i]);
    }
    buf_char(&word, '\'');
    return arena_copy(lines->arena, buf_as_text(&word));
}

static bool text_ends(struct text text, const char *end)
{
    struct text tail = text_of(end);
    return text.length >= tail.length &&
           memcmp(text.at + text.length - tail.length, tail.at, tail.length) == 0;
}

static struct text text_head(struct text text, size_t less)
{
    return (struct text){text.at, text.length - less};
}

/* Behind the last slash. */
static struct text last_name(struct text address)
{
    size_t at = address.length;
    while (at > 0 && address.at[at - 1] != '/')
        at--;
    return (struct text){address.at + at, address.length - at};
}

/* `https://github.com/team/name@REVISION` */
static void repository_fetch(struct market_lines *lines, const struct doc *doc, struct text address,
                             struct text name)
{
    struct text folder = last_name(address), revision = {0};
    const char *at = memchr(folder.at, '@', folder.length);
    if (at) {
        revision = (struct text){at + 1, (size_t)(folder.at + folder.length - at) - 1};
        folder.length = (size_t)(at - folder.at);
        address.length -= revision.length + 1;
    }
    if (text_ends(folder, ".git"))
        folder = text_head(folder, 4);
    line_format(lines, doc, "git clone %s", quoted(lines, address));
    if (revision.length)
        line_format(lines, doc, "git -C %s checkout %s", quoted(lines, folder),
                    quoted(lines, revision));
    if (!text_equal(folder, name))
        line_format(lines, doc, "mv %s %s", quoted(lines, folder), quoted(lines, name));
}

static void archive_fetch(struct market_lines *lines, const struct doc *doc, struct text address,
                          struct text name)
{
    struct text file = last_name(address);
    const char *into = quoted(lines, name);
    line_format(lines, doc, "wget %s", quoted(lines, address));
    if (text_find(file, TEXT(".tar")) != SIZE_MAX || text_ends(file, ".tgz")) {
        line_format(lines, doc, "mkdir -p %s", into);
        line_format(lines, doc, "tar xf %s -C %s --strip-components 1", quoted(lines, file), into);
        return;
    }
    if (text_ends(file, ".gz")) {
        line_format(lines, doc, "gunzip %s", quoted(lines, file));
        file = text_head(file, 3);
    } else if (text_ends(file, ".zip")) {
        line_format(lines, doc, "unzip %s", quoted(lines, file));
        file = text_head(file, 4);
    }
    if (!text_equal(file, name))
        line_format(lines, doc, "mv %s %s", quoted(lines, file), into);
}

/* What is neither of these, such as hdfs://, is left to the task's own command. */
static void addresses_fetch(struct market_lines *lines, const struct doc *uri, struct text name)
{
    const struct doc *const one[] = {uri};
    const struct doc *const *items = uri->kind == DOC_LIST ? uri->as.list.items : one;
    size_t count = uri->kind == DOC_LIST ? uri->as.list.count : 1;
    for (size_t i = 0; i < count; i++) {
        struct text rest = items[i]->kind == DOC_STRING ? items[i]->as.string : (struct text){0};
        bool has_several = count > 1 || memchr(rest.at ? rest.at : "", ',', rest.length);
        if (has_several && i == 0)
            line_format(lines, uri, "mkdir -p %s", quoted(lines, name));
        while (rest.at && rest.length) {
            struct text address = text_trim(text_cut(&rest, ','));
            if (text_find(address, TEXT("github")) != SIZE_MAX || text_ends(address, ".git"))
                repository_fetch(lines, items[i], address, name);
            else if (text_starts(address, TEXT("http")))
                archive_fetch(lines, items[i], address, name);
        }
    }
}

static void commands_add(struct market_lines *lines, const struct doc *command)
{
    if (command && command->kind == DOC_STRING)
        line_add(lines, command, command->as.string);
    for (size_t i = 0; command && command->kind == DOC_LIST && i < command->as.list.count; i++)
        if (command->as.list.items[i]->kind == DOC_STRING)
            line_add(lines, command->as.list.items[i], command->as.list.items[i]->as.string);
}

/* What the task names under `type`. */
static const struct doc *named(const struct doc *root, const struct doc *task, const char *type)
{
    struct text name = doc_get_text(task, type, "");
    return name.length ? market_prerequisite(root, type, name) : NULL;
}

static void prerequisite_add(struct market_lines *lines, const struct doc *item,
                             const struct doc *at)
{
    const struct doc *command = doc_get(item, "command"), *uri = doc_get(item, "uri");
    struct text name = doc_get_text(item, "name", "");
    if (command || !uri)
        line_format(lines, at, "mkdir -p %s", quoted(lines, name));
    if (command)
        commands_add(lines, command);
    else if (uri)
        addresses_fetch(lines, uri, name);
}

void market_lines_read(struct market_lines *lines, const struct doc *root, const struct doc *task,
                       const struct doc *command)
{
    static const char *const before[] = {"data", "script"};
    for (size_t i = 0; i < sizeof before / sizeof before[0]; i++) {
        const struct doc *item = named(root, task, before[i]);
        if (item)
            prerequisite_add(lines, item, doc_get(task, before[i]));
    }
    const struct doc *output = named(root, task, "output");
    if (output)
        line_format(lines, doc_get(task, "output"), "mkdir -p %s",
                    quoted(lines, doc_get_text(output, "name", "")));
    line_format(lines, NULL, "export PAI_CURRENT_DIR=\"$PWD\"");
    size_t own = lines->count;
    commands_add(lines, command);
    for (; own < lines->count; own++)
        lines->items[own].is_own = true;
    if (output)
        commands_add(lines, doc_get(output, "command"));
}
