/* portal.h — replies that are files of the portal.
 *
 * Private to api.
 */
#ifndef API_PORTAL_H
#define API_PORTAL_H

struct api;
struct call;
struct exchange;
struct route;

/* The file of the call's path; of a page, with this Content-Security-Policy. NoApiError. */
int portal_reply(struct call *call, const char *policy);

/* For a path that is neither one of the API nor a page: what answers a person who opened it in a
 * browser. NULL: a program asks, or there is no portal. */
const struct route *portal_missing_page(const struct api *api, const struct exchange *exchange);

#endif
