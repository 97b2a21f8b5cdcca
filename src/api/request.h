/* request.h — what the handlers of requests (docs/rfc/0022-requests.md) share. */
#ifndef API_REQUEST_H
#define API_REQUEST_H
#include "api/token.h"
#include "base/text.h"

struct call;
struct doc;

/* Hexadecimal digits of an id: few enough to be typed. */
enum { REQUEST_ID_LENGTH = 12 };
/* A new id, in the call's arena. */
const char *request_id_make(struct call *call);
/* A line for people, of REQUEST_WHY_MAX bytes at most; "" when it is not there. */
int request_line_read(struct call *call, const struct doc *doc, const char *key, const char **line);

#endif
