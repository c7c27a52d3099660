// A ZeroMQ ROUTER that answers every message.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zmq.h>

int main(int argc, char **argv) {
    if (argc != 2) return 2;
    size_t reply_size = strtoul(argv[1], NULL, 10);
    char *reply = calloc(1, reply_size + 1);
    void *context = zmq_ctx_new();
    zmq_ctx_set(context, ZMQ_MAX_SOCKETS, 16384);
    void *router = zmq_socket(context, ZMQ_ROUTER);
    int unlimited = 0, backlog = 4096;
    zmq_setsockopt(router, ZMQ_SNDHWM, &unlimited, sizeof unlimited);
    zmq_setsockopt(router, ZMQ_RCVHWM, &unlimited, sizeof unlimited);
    zmq_setsockopt(router, ZMQ_BACKLOG, &backlog, sizeof backlog);
    if (zmq_bind(router, "tcp://127.0.0.1:*")) return 1;
    char address[64];
    size_t size = sizeof address;
    zmq_getsockopt(router, ZMQ_LAST_ENDPOINT, address, &size);
    printf("%s\n", strrchr(address, ':') + 1);
    fflush(stdout);
    for (;;) {
        zmq_msg_t identity, body;
        zmq_msg_init(&identity);
        zmq_msg_init(&body);
        if (zmq_msg_recv(&identity, router, 0) < 0 || zmq_msg_recv(&body, router, 0) < 0) return 0;
        zmq_msg_send(&identity, router, ZMQ_SNDMORE);
        zmq_send(router, reply, reply_size, 0);
        zmq_msg_close(&body);
    }
}
