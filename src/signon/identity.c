#include "signon/identity.h"
#include <string.h>

static bool is_of_name(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
           c == '.' || c == '-';
}

bool identity_name(struct text given, char name[IDENTITY_NAME_MAX + 1])
{
    size_t length = given.length;
    for (size_t i = given.length; i > 0; i--) {
        if (given.at[i - 1] == '@') {
            length = i - 1;
            break;
        }
    }
    if (!length || length > IDENTITY_NAME_MAX)
        return false;
    for (size_t i = 0; i < length; i++)
        name[i] = (char)(is_of_name(given.at[i]) ? given.at[i] : '_');
    name[length] = '\0';
    return strcmp(name, ".") != 0 && strcmp(name, "..") != 0;
}
