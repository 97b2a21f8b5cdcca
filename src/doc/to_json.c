#include "doc/doc.h"

#include <math.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/json_writer.h"

static bool is_json_number(struct text text)
{
    size_t first = text.length && text.at[0] == '-' ? 1 : 0;
    if (text.length <= first || text.at[first] < '0' || text.at[first] > '9')
        return false; /* `+1`, `.5`, `.inf` */
    if (text.at[first] == '0' && text.length > first + 1 && text.at[first + 1] != '.')
        return false; /* `0x10`, `007` */
    size_t dot = text_find(text, TEXT("."));
    return dot == SIZE_MAX ||
           (dot + 1 < text.length && text.at[dot + 1] >= '0' && text.at[dot + 1] <= '9');
}

struct writer {
    struct json_writer json;
    size_t length_max;
    bool is_full;
};

static void value_write(struct writer *writer, const struct doc *doc);

static bool has_room(struct writer *writer, size_t more)
{
    const struct buf *out = writer->json.out;
    if (out->length > writer->length_max || writer->length_max - out->length < more)
        writer->is_full = true;
    return !writer->is_full;
}

static void collection_write(struct writer *writer, const struct doc *doc)
{
    if (doc->kind == DOC_LIST) {
        json_array(&writer->json);
        for (size_t i = 0; i < doc->as.list.count && !writer->is_full; i++)
            value_write(writer, doc->as.list.items[i]);
        json_array_end(&writer->json);
        return;
    }
    json_object(&writer->json);
    for (size_t i = 0; i < doc->as.map.count && !writer->is_full; i++) {
        const struct doc_entry *entry = &doc->as.map.entries[i];
        if (!has_room(writer, entry->key.length))
            break;
        json_key(&writer->json, entry->key.at);
        value_write(writer, entry->value);
    }
    json_object_end(&writer->json);
}

static void value_write(struct writer *writer, const struct doc *doc)
{
    if (!has_room(writer, doc->source.length)) {
        json_null(&writer->json);
        return;
    }
    switch (doc->kind) {
    case DOC_NULL:
        json_null(&writer->json);
        break;
    case DOC_BOOL:
        json_bool(&writer->json, doc->as.boolean);
        break;
    case DOC_INT:
        json_int(&writer->json, doc->as.integer);
        break;
    case DOC_REAL:
        if (is_json_number(doc->source))
            json_raw(&writer->json, doc->source);
        else
            json_real(&writer->json, doc->as.real);
        break;
    case DOC_STRING:
        json_text(&writer->json, doc->as.string);
        break;
    case DOC_LIST:
    case DOC_MAP:
        collection_write(writer, doc);
        break;
    }
}

int doc_to_json(const struct doc *doc, size_t bytes_max, struct buf *out)
{
    struct writer writer = {.length_max = out->length + bytes_max};
    json_init(&writer.json, out);
    value_write(&writer, doc);
    return writer.is_full || out->length > writer.length_max ? ERR_TOO_BIG : 0;
}
