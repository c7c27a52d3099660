/* Barrier-synchronised reads on the kernel's TCP: the live side of crosscheck.py.
 *
 *   incast server ADDRESS PORT BYTES CONGESTION DELAY_US   answers each request of 64 bytes with BYTES after a random
 *                                                          delay below DELAY_US, evenly distributed
 *   incast client ADDRESS PORT BYTES CONGESTION N SECONDS  asks on N connections at once, and again when all have
 *                                                          answered. It prints rounds, seconds, and the rounds' times in ms
 *
 * Connections are opened once and kept. One process on each side, so that nothing but the network decides. */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#define REQUEST 64
#define CONNECTIONS_MAX 1024
#define ROUNDS_MAX 1000000

static char buffer[1 << 16];

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

static void fail(const char *what) {
    perror(what);
    exit(2);
}

static void configure(int socket, const char *congestion) {
    int one = 1;
    setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (setsockopt(socket, IPPROTO_TCP, TCP_CONGESTION, congestion, strlen(congestion))) fail(congestion);
}

static void watch(int poll, int socket, int name) {
    struct epoll_event event = {.events = EPOLLIN, .data.fd = name};
    if (epoll_ctl(poll, EPOLL_CTL_ADD, socket, &event)) fail("epoll_ctl");
}

static void answer(int socket, long bytes) {
    while (bytes > 0) {
        long sent = write(socket, buffer, bytes < (long)sizeof buffer ? bytes : (long)sizeof buffer);
        if (sent <= 0) fail("write");
        bytes -= sent;
    }
}

static int serve(struct sockaddr_in *address, long bytes, const char *congestion, double delay) {
    static double due[CONNECTIONS_MAX];
    static int waiting[CONNECTIONS_MAX];
    int count = 0, one = 1, poll = epoll_create1(0), listener = socket(AF_INET, SOCK_STREAM, 0);
    struct epoll_event events[256];
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    configure(listener, congestion);
    if (bind(listener, (void *)address, sizeof *address) || listen(listener, CONNECTIONS_MAX)) fail("listen");
    watch(poll, listener, listener);
    prctl(PR_SET_TIMERSLACK, 1000);
    for (;;) {
        double next = 1e9, time = now();
        for (int i = 0; i < count; i++)
            if (due[waiting[i]] - time < next) next = due[waiting[i]] - time;
        if (next < 0) next = 0;
        struct timespec wait = {(time_t)next, (long)((next - (time_t)next) * 1e9)};
        int ready = epoll_pwait2(poll, events, 256, count ? &wait : NULL, NULL);
        time = now();
        for (int i = 0; i < count;) {
            if (due[waiting[i]] > time) { i++; continue; }
            int socket = waiting[i];
            waiting[i] = waiting[--count];
            answer(socket, bytes);
        }
        for (int i = 0; i < ready; i++) {
            int socket = events[i].data.fd;
            if (socket == listener) {
                socket = accept(listener, NULL, NULL);
                if (socket < 0 || socket >= CONNECTIONS_MAX) fail("accept");
                configure(socket, congestion);
                watch(poll, socket, socket);
            } else if (read(socket, buffer, REQUEST) <= 0) {
                close(socket);
            } else {
                due[socket] = time + delay * drand48();
                waiting[count++] = socket;
            }
        }
    }
}

static int ask(struct sockaddr_in *address, long bytes, const char *congestion, int senders, double seconds) {
    static double times[ROUNDS_MAX];
    int sockets[CONNECTIONS_MAX], rounds = 0, poll = epoll_create1(0);
    long received[CONNECTIONS_MAX];
    struct epoll_event events[256];
    if (senders < 1 || senders > CONNECTIONS_MAX) fail("senders");
    for (int i = 0; i < senders; i++) {
        sockets[i] = socket(AF_INET, SOCK_STREAM, 0);
        configure(sockets[i], congestion);
        if (connect(sockets[i], (void *)address, sizeof *address)) fail("connect");
        fcntl(sockets[i], F_SETFL, O_NONBLOCK);
        watch(poll, sockets[i], i);
    }
    double begun = now(), last = begun;
    while (last < begun + seconds && rounds < ROUNDS_MAX) {
        int unanswered = senders;
        for (int i = 0; i < senders; i++) {
            received[i] = 0;
            if (write(sockets[i], buffer, REQUEST) != REQUEST) fail("write");
        }
        while (unanswered) {
            int ready = epoll_wait(poll, events, 256, 10000);
            if (ready <= 0) fail("no answer within 10 s");
            for (int k = 0; k < ready; k++) {
                int i = events[k].data.fd;
                long more;
                while ((more = read(sockets[i], buffer, sizeof buffer)) > 0) received[i] += more;
                if (received[i] >= bytes) { received[i] = -1L << 40; unanswered--; }
            }
        }
        double time = now();
        times[rounds++] = time - last;
        last = time;
    }
    printf("%d %.6f\n", rounds, last - begun);
    for (int i = 0; i < rounds; i++) printf("%.3f\n", times[i] * 1e3);
    return 0;
}

int main(int count, char **words) {
    if (count < 7) return 2;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(atoi(words[3]))};
    inet_pton(AF_INET, words[2], &address.sin_addr);
    long bytes = atol(words[4]);
    if (!strcmp(words[1], "server")) return serve(&address, bytes, words[5], atof(words[6]) / 1e6);
    if (count < 8) return 2;
    return ask(&address, bytes, words[5], atoi(words[6]), atof(words[7]));
}
