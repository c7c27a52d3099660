/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * M21TCP at the hosts (Adesanmi and Mhamdi, "M21TCP", section III.B). Every segment carries an option in which switches
 * on its path lower a window. The receiver echoes the least window that arrived. The sender takes it as a bound of its
 * congestion window, with any congestion control.
 *
 * The option: kind 253 (RFC 4727), length 8, 16 bits that name one of the two options, 32 bits of window in bytes. The
 * switch's side is crates/switch/src/m21.rs.
 */
#include <stdbool.h>

#include <linux/bpf.h>
#include <linux/types.h>

#include <bpf/bpf_endian.h>
#include <bpf/bpf_helpers.h>

char _license[] SEC("license") = "Dual BSD/GPL";

#define KIND 253
#define FORWARD 1
/* The echo as switches know it, or one that they do not, which arrives as it was sent. */
#define ECHO (fanin_m21_parts & FRESH_ECHO ? 2 : 3)
#define NO_LIMIT 0xffffffffU

#define SOL_TCP 6
#define TCP_FLAG_ACK 0x10
#define TCP_FLAG_SYN 0x02

#define FLAGS (BPF_SOCK_OPS_PARSE_UNKNOWN_HDR_OPT_CB_FLAG | BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG)

/* Parts of the mechanism; each can be taken away, to see what it is for. */
#define OPENING 1      /* SYN and SYN-ACK carry the option */
#define FIRST_WINDOW 2 /* it bounds what is sent before the first acknowledgement */
#define FRESH_ECHO 4   /* switches lower the echo on its way back, too */
const volatile __u32 fanin_m21_parts = OPENING | FIRST_WINDOW | FRESH_ECHO;

struct option {
	__u8 kind;
	__u8 length;
	__be16 which;
	__be32 window;
} __attribute__((packed));

struct state {
	__u32 seen;     /* the window that arrived last, bytes; it goes back as the echo */
	__u32 has_seen;
	__u32 clamp;    /* segments in force; 0: none so far */
};

/* Namespaces whose connections take part, by their cookies. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 8192);
	__type(key, __u64);
	__type(value, __u8);
} fanin_m21_hosts SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_SK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct state);
} fanin_m21_state SEC(".maps");

/* Events for user space: windows from an echo, and times that a window in force changed. */
struct figures {
	__u64 echoes;
	__u64 changes;
	__u64 below_segment;
	__u64 refused;
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct figures);
} fanin_m21_figures SEC(".maps");

static __always_inline bool takes_part(struct bpf_sock_ops *ops)
{
	__u64 cookie = bpf_get_netns_cookie(ops);

	return bpf_map_lookup_elem(&fanin_m21_hosts, &cookie);
}

static __always_inline void begin(struct bpf_sock_ops *ops)
{
	if (takes_part(ops))
		bpf_sock_ops_cb_flags_set(ops, ops->bpf_sock_ops_cb_flags | FLAGS);
}

static __always_inline struct state *state(struct bpf_sock_ops *ops)
{
	struct bpf_sock *sk = ops->sk;

	if (!sk)
		return NULL;
	return bpf_sk_storage_get(&fanin_m21_state, sk, NULL, BPF_SK_STORAGE_GET_F_CREATE);
}

/* The sender's bound: whole segments, and never less than one. */
static __always_inline void bound(struct bpf_sock_ops *ops, struct state *st, __u32 window)
{
	/* mss_cache does not count the option's bytes of each full segment. */
	__u32 zero = 0, mss = ops->mss_cache - sizeof(struct option), segments;
	struct figures *figures = bpf_map_lookup_elem(&fanin_m21_figures, &zero);
	int value;

	if (!figures)
		return;
	figures->echoes++;
	if (window == NO_LIMIT || ops->mss_cache <= sizeof(struct option))
		return;
	segments = window / mss;
	if (!segments) {
		figures->below_segment++;
		segments = 1;
	}
	value = segments;
	if (st->clamp == segments)
		return;
	/* Before any data the window itself can be set, so that not even the first burst is larger. */
	if (!ops->data_segs_out && (fanin_m21_parts & FIRST_WINDOW))
		bpf_setsockopt(ops, SOL_TCP, TCP_BPF_IW, &value, sizeof(value));
	if (bpf_setsockopt(ops, SOL_TCP, TCP_BPF_SNDCWND_CLAMP, &value, sizeof(value))) {
		figures->refused++;
		return;
	}
	st->clamp = segments;
	figures->changes++;
}

/* Both options may stand in one segment. The helper finds the first of a kind, so a magic number distinguishes them. */
static __always_inline bool find(struct bpf_sock_ops *ops, __u16 which, __u32 *window)
{
	struct option option = { .kind = KIND, .length = 4, .which = bpf_htons(which) };

	if (bpf_load_hdr_opt(ops, &option, sizeof(option), 0) != sizeof(option))
		return false;
	*window = bpf_ntohl(option.window);
	return true;
}

static __always_inline void read_options(struct bpf_sock_ops *ops)
{
	struct state *st = state(ops);
	__u32 window;

	if (!st)
		return;
	if (find(ops, FORWARD, &window)) {
		st->seen = window;
		st->has_seen = 1;
	}
	if (find(ops, ECHO, &window))
		bound(ops, st, window);
}

static __always_inline bool has_echo(struct bpf_sock_ops *ops)
{
	struct state *st = state(ops);

	return st && st->has_seen;
}

/*
 * A full segment has room for one option: the kernel subtracts what is reserved for no segment in particular from the
 * payload of all. An acknowledgement carries the echo alone; a short segment both.
 */
static __always_inline void reserve(struct bpf_sock_ops *ops)
{
	__u32 bytes = sizeof(struct option);

	if ((ops->skb_tcp_flags & TCP_FLAG_SYN) && !(fanin_m21_parts & OPENING))
		return;
	if (ops->args[0] == 0 && !(ops->skb_tcp_flags & TCP_FLAG_SYN) && ops->skb_len > 0 &&
	    ops->skb_len + 2 * sizeof(struct option) <= ops->mss_cache && has_echo(ops))
		bytes += sizeof(struct option);
	if (bpf_reserve_hdr_opt(ops, bytes, 0))
		bpf_reserve_hdr_opt(ops, sizeof(struct option), 0);
}

static __always_inline int store(struct bpf_sock_ops *ops, __u16 which, __u32 window)
{
	struct option option = {
		.kind = KIND, .length = sizeof(option), .which = bpf_htons(which), .window = bpf_htonl(window),
	};

	return bpf_store_hdr_opt(ops, &option, sizeof(option), 0);
}

static __always_inline void write_options(struct bpf_sock_ops *ops)
{
	bool opens = ops->skb_tcp_flags & TCP_FLAG_SYN;
	struct state *st = opens ? NULL : state(ops);
	void *data = ops->skb_data, *end = ops->skb_data_end;
	__u32 header;

	if (opens && !(fanin_m21_parts & OPENING))
		return;
	/* A SYN and its answer open a flow at every switch; there is nothing to echo so far. */
	if (!st || !st->has_seen) {
		store(ops, FORWARD, NO_LIMIT);
		return;
	}
	if (data + 20 > end)
		return;
	header = (((__u8 *)data)[12] >> 4) * 4;
	/* skb_len counts the header here. */
	if (ops->skb_len <= header) {
		store(ops, ECHO, st->seen);
		return;
	}
	store(ops, FORWARD, NO_LIMIT);
	/* Without room it goes with the next one. */
	store(ops, ECHO, st->seen);
}

SEC("sockops")
int fanin_m21(struct bpf_sock_ops *ops)
{
	switch (ops->op) {
	case BPF_SOCK_OPS_TCP_CONNECT_CB:
	case BPF_SOCK_OPS_TCP_LISTEN_CB:
		begin(ops);
		break;
	case BPF_SOCK_OPS_ACTIVE_ESTABLISHED_CB:
	case BPF_SOCK_OPS_PASSIVE_ESTABLISHED_CB:
		/* The segment here is the answer to the SYN, or the acknowledgement of that. */
		if (ops->bpf_sock_ops_cb_flags & BPF_SOCK_OPS_WRITE_HDR_OPT_CB_FLAG)
			read_options(ops);
		break;
	case BPF_SOCK_OPS_PARSE_HDR_OPT_CB:
		read_options(ops);
		break;
	case BPF_SOCK_OPS_HDR_OPT_LEN_CB:
		reserve(ops);
		break;
	case BPF_SOCK_OPS_WRITE_HDR_OPT_CB:
		write_options(ops);
		break;
	}
	return 1;
}
