/* The user's command of the benchmark: says when it began to run, on its output and, when a port is
 * given, to 127.0.0.1 there by UDP. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>

int main(int argc, char **argv)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    char text[40];
    int length =
        snprintf(text, sizeof text, "%lld\n", (long long)now.tv_sec * 1000000 + now.tv_nsec / 1000);
    if (argc > 1) {
        struct sockaddr_in to = {.sin_family = AF_INET,
                                 .sin_port = htons((uint16_t)atoi(argv[1])),
                                 .sin_addr = {htonl(INADDR_LOOPBACK)}};
        int fd = socket(AF_INET, SOCK_DGRAM, 0);
        if (fd < 0 ||
            sendto(fd, text, (size_t)length, 0, (struct sockaddr *)&to, sizeof to) != length)
            return 1;
    }
    fputs(text, stdout);
    return 0;
}
