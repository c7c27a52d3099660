/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * The kernel's types, as far as the programs here use them. libbpf finds each field in the running kernel's BTF by
 * its name (preserve_access_index). So the order and size of fields do not matter, nor do other fields.
 */
#ifndef FANIN_TCP_H
#define FANIN_TCP_H

#include <linux/types.h>
#include <stdbool.h>

#include <linux/bpf.h>

#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sock {
	int sk_rcvbuf;
};

struct inet_connection_sock_ack {
	__u8 pending;
};

struct inet_connection_sock {
	struct inet_connection_sock_ack icsk_ack;
	__u64 icsk_ca_priv[13];
};

struct tcp_sock {
	__u32 rcv_nxt;
	__u32 snd_nxt;
	__u32 snd_una;
	__u32 snd_cwnd;
	__u32 snd_cwnd_clamp;
	__u32 snd_ssthresh;
	__u32 prior_cwnd;
	__u32 delivered;
	__u32 delivered_ce;
	__u8 ecn_flags;
};

struct rate_sample;

struct tcp_congestion_ops {
	__u32 (*ssthresh)(struct sock *sk);
	void (*cong_avoid)(struct sock *sk, __u32 ack, __u32 acked);
	void (*set_state)(struct sock *sk, __u8 new_state);
	void (*cwnd_event)(struct sock *sk, int event);
	void (*in_ack_event)(struct sock *sk, __u32 flags);
	void (*cong_control)(struct sock *sk, __u32 ack, int flag, const struct rate_sample *rs);
	__u32 (*undo_cwnd)(struct sock *sk);
	void (*init)(struct sock *sk);
	__u32 flags;
	char name[16];
};

#pragma clang attribute pop

/* include/net/tcp.h */
#define TCP_CONG_NON_RESTRICTED 0x1
#define TCP_CONG_NEEDS_ECN 0x2
#define TCP_ECN_OK 0x1
#define TCP_ECN_DEMAND_CWR 0x4

/* A comparison of sequence numbers, RFC 9293 section 3.4. */
static __always_inline bool before(__u32 a, __u32 b)
{
	return (__s32)(a - b) < 0;
}

static __always_inline struct tcp_sock *tcp_sk(const struct sock *sk)
{
	return (struct tcp_sock *)sk;
}

static __always_inline struct inet_connection_sock *inet_csk(const struct sock *sk)
{
	return (struct inet_connection_sock *)sk;
}

#endif
