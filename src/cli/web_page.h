/* web_page.h — pages of the web, opened in the user's browser. */
#ifndef CLI_WEB_PAGE_H
#define CLI_WEB_PAGE_H
#include <stdbool.h>

/* May a browser be given what a server named? NULL may not. */
bool web_page_is_good(const char *url);
/* By $BROWSER, or by xdg-open where there is a screen. Nothing is lost when it does not work: the
 * address is on the terminal. */
void web_page_open(const char *url);

#endif
