// The floor: a bare epoll loop with the framing of fanin-message, and nothing else. One read and one write for all the
// requests that arrived together; bodies of requests are kept whole until they are answered.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HEADER = 12, BATCH = 512, SMALL = 65536 };

struct connection {
    int fd;
    char *in;
    size_t room, have;
    char *out;
    size_t out_room, out_have, out_sent;
};

static char *reply;
static size_t reply_size;

static void append_reply(struct connection *c, uint32_t stream) {
    size_t need = HEADER + reply_size;
    if (c->out_have + need > c->out_room) {
        c->out_room = (c->out_have + need) * 2;
        c->out = realloc(c->out, c->out_room);
    }
    uint32_t header[3] = {2, stream, (uint32_t)reply_size};
    memcpy(c->out + c->out_have, header, HEADER);
    memcpy(c->out + c->out_have + HEADER, reply, reply_size);
    c->out_have += need;
}

static void flush(struct connection *c, int epoll) {
    while (c->out_sent < c->out_have) {
        ssize_t n = write(c->fd, c->out + c->out_sent, c->out_have - c->out_sent);
        if (n < 0) {
            if (errno != EAGAIN) break;
            struct epoll_event event = {.events = EPOLLIN | EPOLLOUT, .data.ptr = c};
            epoll_ctl(epoll, EPOLL_CTL_MOD, c->fd, &event);
            return;
        }
        c->out_sent += n;
    }
    c->out_sent = c->out_have = 0;
}

static int serve(struct connection *c, int epoll) {
    ssize_t n = read(c->fd, c->in + c->have, c->room - c->have);
    if (n <= 0) return n < 0 && errno == EAGAIN ? 0 : -1;
    c->have += n;
    size_t at = 0;
    while (c->have - at >= HEADER) {
        uint32_t header[3];
        memcpy(header, c->in + at, HEADER);
        size_t whole = HEADER + (size_t)header[2];
        if (whole > c->room) {
            memmove(c->in, c->in + at, c->have - at);
            c->have -= at;
            at = 0;
            c->room = whole + SMALL;
            c->in = realloc(c->in, c->room);
        }
        if (c->have - at < whole) break;
        append_reply(c, header[1]);
        at += whole;
    }
    if (at && c->have > at) memmove(c->in, c->in + at, c->have - at);
    c->have -= at;
    if (c->out_have) flush(c, epoll);
    return 0;
}

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    reply_size = strtoul(argv[1], NULL, 10);
    reply = calloc(1, reply_size + 1);
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    if (bind(listener, (struct sockaddr *)&address, size) || listen(listener, 4096)) return 1;
    getsockname(listener, (struct sockaddr *)&address, &size);
    printf("%d\n", ntohs(address.sin_port));
    fflush(stdout);
    int epoll = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = NULL};
    epoll_ctl(epoll, EPOLL_CTL_ADD, listener, &event);
    static struct epoll_event events[BATCH];
    for (;;) {
        int count = epoll_wait(epoll, events, BATCH, -1);
        for (int i = 0; i < count; i++) {
            struct connection *c = events[i].data.ptr;
            if (!c) {
                int fd;
                while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK)) >= 0) {
                    int on = 1;
                    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
                    c = calloc(1, sizeof *c);
                    c->fd = fd;
                    c->room = SMALL;
                    c->in = malloc(c->room);
                    struct epoll_event in = {.events = EPOLLIN, .data.ptr = c};
                    epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &in);
                }
                continue;
            }
            if (events[i].events & EPOLLOUT) {
                struct epoll_event in = {.events = EPOLLIN, .data.ptr = c};
                epoll_ctl(epoll, EPOLL_CTL_MOD, c->fd, &in);
                flush(c, epoll);
            }
            if (events[i].events & (EPOLLIN | EPOLLHUP | EPOLLERR) && serve(c, epoll)) {
                close(c->fd);
                free(c->in);
                free(c->out);
                free(c);
            }
        }
    }
}
