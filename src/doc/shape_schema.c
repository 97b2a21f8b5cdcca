#include "doc/shape.h"

#include <assert.h>
#include <stdio.h>

#include "base/json_writer.h"
#include "base/memory.h"

static void shape_write(struct json_writer *json, const struct shape *shape, const char *title);

static void limits_write(struct json_writer *json, const struct field *field, const char *low,
                         const char *high)
{
    if (field->min == 0 && field->max == 0)
        return;
    json_key_int(json, low, field->min);
    json_key_int(json, high, field->max);
}

static void type_write(struct json_writer *json, const struct field *field, const char *type)
{
    if (!(field->flags & FIELD_NULLABLE)) {
        json_key_string(json, "type", type);
        return;
    }
    json_key(json, "type");
    json_array(json);
    json_string(json, type);
    json_string(json, "null");
    json_array_end(json);
}

static void pattern_write(struct json_writer *json, const char *key,
                          const struct shape_pattern *pattern)
{
    char regex[160];
    int length = snprintf(regex, sizeof regex, "^[%s][%s]*$", pattern->first, pattern->rest);
    assert(length > 0 && (size_t)length < sizeof regex);
    json_key_string(json, key, regex);
}

static void choice_write(struct json_writer *json, const struct field *field)
{
    json_key(json, "enum");
    json_array(json);
    for (const char *const *choice = field->choices; *choice; choice++) {
        int64_t number;
        json_string(json, *choice);
        if ((field->flags & FIELD_CONVERTS) && text_to_int64(text_of(*choice), &number))
            json_int(json, number);
    }
    json_array_end(json);
}

static void variants_write(struct json_writer *json, const struct field *field)
{
    json_object(json);
    json_key_string(json, "type", "object");
    json_key(json, "required");
    json_array(json);
    json_string(json, field->tag);
    json_array_end(json);
    json_key(json, "oneOf");
    json_array(json);
    for (size_t i = 0; i < field->variant_count; i++) {
        json_object(json);
        json_key(json, "allOf");
        json_array(json);
        json_object(json);
        json_key(json, "properties");
        json_object(json);
        json_key(json, field->tag);
        json_object(json);
        json_key_string(json, "const", field->variants[i].tag);
        json_object_end(json);
        json_object_end(json);
        json_object_end(json);
        shape_write(json, field->variants[i].shape, NULL);
        json_array_end(json);
        json_object_end(json);
    }
    json_array_end(json);
    json_object_end(json);
}

static void names_write(struct json_writer *json, const struct field *field)
{
    type_write(json, field, "object");
    if (field->kind == FIELD_MAP_MAP)
        limits_write(json, field, "minProperties", "maxProperties");
    if (field->pattern) {
        json_key(json, "propertyNames");
        json_object(json);
        pattern_write(json, "pattern", field->pattern);
        json_object_end(json);
    }
    if (field->kind == FIELD_FREE_MAP)
        return;
    json_key(json, "additionalProperties");
    if (field->kind == FIELD_MAP_MAP) {
        shape_write(json, field->shape, NULL);
        return;
    }
    json_object(json);
    json_key_string(json, "type", "integer");
    limits_write(json, field, "minimum", "maximum");
    json_object_end(json);
}

static void list_write(struct json_writer *json, const struct field *field)
{
    type_write(json, field, "array");
    limits_write(json, field, "minItems", "maxItems");
    json_key(json, "items");
    if (field->kind == FIELD_MAP_LIST) {
        shape_write(json, field->shape, NULL);
    } else if (field->kind == FIELD_VARIANT_LIST) {
        variants_write(json, field);
    } else {
        json_object(json);
        json_key_string(json, "type", "string");
        json_object_end(json);
    }
}

static void label_write(struct json_writer *json, const struct field *field)
{
    json_key(json, "type");
    json_array(json);
    json_string(json, "string");
    json_string(json, "number");
    if (field->flags & FIELD_NULLABLE)
        json_string(json, "null");
    json_array_end(json);
}

/* Everything but FIELD_MAP, whose members are those of its shape. */
static void members_write(struct json_writer *json, const struct field *field)
{
    switch (field->kind) {
    case FIELD_ANY:
    case FIELD_MAP:
        break;
    case FIELD_STRING:
        type_write(json, field, "string");
        limits_write(json, field, "minLength", "maxLength");
        if (field->pattern)
            pattern_write(json, "pattern", field->pattern);
        break;
    case FIELD_LABEL:
        label_write(json, field);
        break;
    case FIELD_INT:
        type_write(json, field, "integer");
        limits_write(json, field, "minimum", "maximum");
        break;
    case FIELD_BOOL:
        type_write(json, field, "boolean");
        break;
    case FIELD_CHOICE:
        choice_write(json, field);
        break;
    case FIELD_STRINGS:
    case FIELD_MAP_LIST:
    case FIELD_VARIANT_LIST:
        list_write(json, field);
        break;
    case FIELD_MAP_MAP:
    case FIELD_INT_MAP:
    case FIELD_FREE_MAP:
        names_write(json, field);
        break;
    }
}

static void field_write(struct json_writer *json, const struct field *field)
{
    json_object(json);
    if (field->help)
        json_key_string(json, "description", field->help);
    if (field->kind != FIELD_MAP) {
        members_write(json, field);
    } else {
        json_key(json, "anyOf");
        json_array(json);
        shape_write(json, field->shape, NULL);
        static const struct {
            unsigned flag;
            const char *type;
        } others[] = {{FIELD_NULLABLE, "null"}, {FIELD_OR_TEXT, "string"}};
        for (size_t i = 0; i < COUNT_OF(others); i++) {
            if (!(field->flags & others[i].flag))
                continue;
            json_object(json);
            json_key_string(json, "type", others[i].type);
            json_object_end(json);
        }
        json_array_end(json);
    }
    json_object_end(json);
}

static void shape_write(struct json_writer *json, const struct shape *shape, const char *title)
{
    json_object(json);
    if (title) {
        json_key_string(json, "$schema", "http://json-schema.org/draft-07/schema#");
        json_key_string(json, "title", title);
    }
    json_key_string(json, "type", "object");
    json_key(json, "properties");
    json_object(json);
    bool has_required = false;
    for (size_t i = 0; i < shape->count; i++) {
        json_key(json, shape->fields[i].name);
        field_write(json, &shape->fields[i]);
        has_required |= shape->fields[i].flags & FIELD_REQUIRED;
    }
    json_object_end(json);
    if (has_required) {
        json_key(json, "required");
        json_array(json);
        for (size_t i = 0; i < shape->count; i++)
            if (shape->fields[i].flags & FIELD_REQUIRED)
                json_string(json, shape->fields[i].name);
        json_array_end(json);
    }
    if (shape->unknown == UNKNOWN_ERROR)
        json_key_bool(json, "additionalProperties", false);
    json_object_end(json);
}

void shape_schema(const struct shape *shape, const char *title, struct buf *out)
{
    struct json_writer json;
    json_init(&json, out);
    shape_write(&json, shape, title);
}
