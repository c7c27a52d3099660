/* DPDK's functions are inline: these give them addresses. Nothing is decided here. */

#include <string.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mbuf.h>

/* A frame as Rust sees it: its handle, and all its bytes. */
struct fanin_handle {
    struct rte_mbuf *mbuf;
    void *data;
    uint32_t head; /* bytes in its first part */
};

struct fanin_frame {
    struct fanin_handle handle;
    uint32_t bytes;
};

int fanin_dpdk_start(int count, char **arguments) { return rte_eal_init(count, arguments) < 0 ? rte_errno : 0; }

int fanin_dpdk_port(const char *name, uint16_t *port) { return -rte_eth_dev_get_port_by_name(name, port); }

struct rte_mempool *fanin_dpdk_pool(const char *name, unsigned frames, uint16_t room) {
    return rte_pktmbuf_pool_create(name, frames, 256, 0, RTE_PKTMBUF_HEADROOM + room, (int)rte_socket_id());
}

int fanin_dpdk_open(uint16_t port, struct rte_mempool *pool, uint16_t slots, uint16_t mtu) {
    struct rte_eth_conf conf;
    struct rte_eth_dev_info info;
    int result = rte_eth_dev_info_get(port, &info);
    if (result != 0)
        return -result;
    memset(&conf, 0, sizeof(conf));
    conf.rxmode.mtu = mtu;
    if (info.max_mtu != 0 && info.max_mtu < mtu)
        conf.rxmode.mtu = info.max_mtu;
    conf.txmode.offloads = info.tx_offload_capa & RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
    result = rte_eth_dev_configure(port, 1, 1, &conf);
    if (result == 0)
        result = rte_eth_dev_adjust_nb_rx_tx_desc(port, &slots, &slots);
    if (result == 0)
        result = rte_eth_rx_queue_setup(port, 0, slots, (unsigned)rte_eth_dev_socket_id(port), NULL, pool);
    if (result == 0)
        result = rte_eth_tx_queue_setup(port, 0, slots, (unsigned)rte_eth_dev_socket_id(port), NULL);
    if (result == 0)
        result = rte_eth_dev_start(port);
    if (result == 0)
        /* A device that refuses this setting is promiscuous without it. */
        rte_eth_promiscuous_enable(port);
    return -result;
}

void fanin_dpdk_close(uint16_t port) {
    rte_eth_dev_stop(port);
    rte_eth_dev_close(port);
}

int fanin_dpdk_thread(void) { return rte_lcore_id() == LCORE_ID_ANY && rte_thread_register() < 0 ? rte_errno : 0; }

uint16_t fanin_dpdk_receive(uint16_t port, struct fanin_frame *frames, uint16_t count) {
    struct rte_mbuf *mbufs[64];
    uint16_t received = rte_eth_rx_burst(port, 0, mbufs, RTE_MIN(count, (uint16_t)64));
    for (uint16_t n = 0; n < received; n++) {
        void *data = rte_pktmbuf_mtod(mbufs[n], void *);
        rte_prefetch0(data);
        frames[n].handle = (struct fanin_handle){mbufs[n], data, rte_pktmbuf_data_len(mbufs[n])};
        frames[n].bytes = rte_pktmbuf_pkt_len(mbufs[n]);
    }
    return received;
}

uint16_t fanin_dpdk_transmit(uint16_t port, const struct fanin_frame *frames, uint16_t count) {
    struct rte_mbuf *mbufs[64];
    count = RTE_MIN(count, (uint16_t)64);
    for (uint16_t n = 0; n < count; n++)
        mbufs[n] = frames[n].handle.mbuf;
    return rte_eth_tx_burst(port, 0, mbufs, count);
}

void fanin_dpdk_free(struct rte_mbuf *mbuf) { rte_pktmbuf_free(mbuf); }

/* A frame of `count` bytes in as many parts as it takes; NULL if there are too few. */
struct rte_mbuf *fanin_dpdk_make(struct rte_mempool *pool, const uint8_t *bytes, uint32_t count) {
    struct rte_mbuf *first = rte_pktmbuf_alloc(pool), *last = first;
    while (last != NULL) {
        uint16_t part = (uint16_t)RTE_MIN(count, (uint32_t)rte_pktmbuf_tailroom(last));
        memcpy(rte_pktmbuf_append(last, part), bytes, part);
        if (last != first) {
            last->next = NULL;
            rte_pktmbuf_lastseg(first)->next = last;
            first->nb_segs++;
            first->pkt_len += part;
        }
        bytes += part;
        count -= part;
        if (count == 0)
            return first;
        last = rte_pktmbuf_alloc(pool);
    }
    rte_pktmbuf_free(first);
    return NULL;
}

void fanin_dpdk_copy(const struct rte_mbuf *mbuf, uint8_t *bytes) {
    for (; mbuf != NULL; mbuf = mbuf->next) {
        memcpy(bytes, rte_pktmbuf_mtod(mbuf, const void *), rte_pktmbuf_data_len(mbuf));
        bytes += rte_pktmbuf_data_len(mbuf);
    }
}

void *fanin_dpdk_grow(struct rte_mbuf *mbuf, uint16_t bytes) { return rte_pktmbuf_prepend(mbuf, bytes); }

void *fanin_dpdk_cut(struct rte_mbuf *mbuf, uint16_t bytes) { return rte_pktmbuf_adj(mbuf, bytes); }

unsigned fanin_dpdk_room(const struct rte_mempool *pool) { return rte_mempool_avail_count(pool); }

int fanin_dpdk_is_up(uint16_t port) {
    struct rte_eth_link link;
    return rte_eth_link_get_nowait(port, &link) == 0 && link.link_status == RTE_ETH_LINK_UP;
}

uint64_t fanin_dpdk_missed(uint16_t port) {
    struct rte_eth_stats stats;
    return rte_eth_stats_get(port, &stats) == 0 ? stats.imissed + stats.rx_nombuf : 0;
}
