/* shapes.h — the tables of fields that the tests of shapes use. */
#ifndef TESTS_DOC_SHAPES_H
#define TESTS_DOC_SHAPES_H
#include "unit.h"

#include "base/memory.h"
#include "doc/shape.h"

static const struct shape_pattern word = {"a-z", "a-z0-9\\-_", "small letters"};
static const char *const colours[] = {"red", "green", "7", NULL};
static const char *const only[] = {"x", NULL};
static const struct field inner_fields[] = {
    {.name = "kind", .kind = FIELD_STRING},
    {.name = "size", .kind = FIELD_INT, .flags = FIELD_REQUIRED},
};
static const struct shape inner = {inner_fields, COUNT_OF(inner_fields), UNKNOWN_WARN};
static const struct shape_variant variants[] = {{"box", &inner}, {"ball", &inner}};
static const struct field fields[] = {
    {.name = "any", .kind = FIELD_ANY},
    {.name = "string", .kind = FIELD_STRING, .min = 1, .max = 5, .pattern = &word},
    {.name = "free", .kind = FIELD_STRING, .flags = FIELD_NULLABLE, .help = "Text"},
    {.name = "label", .kind = FIELD_LABEL},
    {.name = "int", .kind = FIELD_INT, .min = 2, .max = 9},
    {.name = "soft", .kind = FIELD_INT, .flags = FIELD_CONVERTS},
    {.name = "bool", .kind = FIELD_BOOL},
    {.name = "choice", .kind = FIELD_CHOICE, .choices = colours, .flags = FIELD_CONVERTS},
    {.name = "only", .kind = FIELD_CHOICE, .choices = only},
    {.name = "strings", .kind = FIELD_STRINGS, .min = 1, .max = 2},
    {.name = "map", .kind = FIELD_MAP, .shape = &inner, .flags = FIELD_NULLABLE},
    {.name = "maps", .kind = FIELD_MAP_LIST, .shape = &inner, .min = 0, .max = 2},
    {.name = "variants",
     .kind = FIELD_VARIANT_LIST,
     .tag = "kind",
     .variants = variants,
     .variant_count = COUNT_OF(variants)},
    {.name = "names", .kind = FIELD_MAP_MAP, .shape = &inner, .pattern = &word, .min = 1, .max = 2},
    {.name = "numbers", .kind = FIELD_INT_MAP, .min = 1, .max = 3},
    {.name = "open", .kind = FIELD_FREE_MAP},
};
static const struct shape outer = {fields, COUNT_OF(fields), UNKNOWN_ERROR};

#endif
