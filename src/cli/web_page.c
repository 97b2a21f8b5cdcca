#include "cli/web_page.h"
#include "cli/print.h"
#include "sys/process.h"
#include <stdlib.h>
#include <string.h>

bool web_page_is_good(const char *url)
{
    if (!url || (strncmp(url, "https://", 8) != 0 && strncmp(url, "http://", 7) != 0))
        return false;
    for (; *url; url++)
        if ((unsigned char)*url <= ' ' || (unsigned char)*url >= 0x7f)
            return false;
    return true;
}

void web_page_open(const char *url)
{
    const char *browser = getenv("BROWSER");
    const char *display = getenv("DISPLAY"), *wayland = getenv("WAYLAND_DISPLAY");
    bool has_screen = (display && display[0]) || (wayland && wayland[0]);
    pid_t pid;
    if (!browser || !browser[0])
        browser = has_screen ? "xdg-open" : NULL;
    if (!browser)
        return;
    const char *argv[] = {browser, url, NULL};
    if (process_spawn(&(struct process){.argv = argv, .in = -1, .out = -1, .err = -1}, &pid, NULL))
        print_error("%s cannot be started: open the page yourself\n", browser);
}
