/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * DCTCP as RFC 8257 has it: the sender reduces its window by the share of bytes that met a marking queue. This
 * kernel has no dctcp module; the acknowledgement of marks is the receiver's part, in cwnd_event below.
 */
#include "tcp.h"

char _license[] SEC("license") = "Dual BSD/GPL";

/* enum tcp_ca_event and enum tcp_ca_state of the kernel. */
#define CA_EVENT_LOSS 3
#define CA_EVENT_ECN_NO_CE 4
#define CA_EVENT_ECN_IS_CE 5
#define TCP_CA_RECOVERY 3

/* enum inet_csk_ack_state_t. */
#define ICSK_ACK_TIMER 2
#define ICSK_ACK_NOW 16

/* alpha is a fixed-point share: 1024 is all. */
#define ALPHA_MAX 1024U
#define CWND_MIN 2U

/* g = 2^-4, RFC 8257 section 3.3 (4.2 recommends 1/16). */
const volatile __u32 fanin_gain_shift = 4;

struct dctcp {
	__u32 alpha;
	__u32 window_end;       /* the observation window ends when this is acknowledged */
	__u32 delivered;        /* segments, when the window began */
	__u32 delivered_ce;
	__u32 prior_rcv_nxt;    /* what an acknowledgement of the old CE state covers */
	__u32 ce_state;
	__u32 loss_cwnd;
};

static __always_inline struct dctcp *state(const struct sock *sk)
{
	return (struct dctcp *)inet_csk(sk)->icsk_ca_priv;
}

static __always_inline void begin_window(const struct tcp_sock *tp, struct dctcp *ca)
{
	ca->window_end = tp->snd_nxt;
	ca->delivered = tp->delivered;
	ca->delivered_ce = tp->delivered_ce;
}

SEC("struct_ops/dctcp_init")
void BPF_PROG(dctcp_init, struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct dctcp *ca = state(sk);

	ca->prior_rcv_nxt = tp->rcv_nxt;
	ca->ce_state = 0;
	ca->loss_cwnd = 0;
	/* RFC 8257 section 4.2: alpha starts at 1, so that the first mark halves the window. */
	ca->alpha = ALPHA_MAX;
	begin_window(tp, ca);
}

/* RFC 8257 section 3.3, step 8 and 9; without ECN on the connection this is Reno's half. */
SEC("struct_ops/dctcp_ssthresh")
__u32 BPF_PROG(dctcp_ssthresh, struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct dctcp *ca = state(sk);
	__u32 alpha = tp->ecn_flags & TCP_ECN_OK ? ca->alpha : ALPHA_MAX;
	__u32 cwnd = tp->snd_cwnd;
	__u32 reduced = cwnd - ((cwnd * alpha) >> 11);

	ca->loss_cwnd = cwnd;
	return reduced > CWND_MIN ? reduced : CWND_MIN;
}

/* RFC 8257 section 3.3, steps 1 to 7: once a window of data, alpha moves towards the share of marked segments. */
SEC("struct_ops/dctcp_ack")
void BPF_PROG(dctcp_ack, struct sock *sk, __u32 flags)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	struct dctcp *ca = state(sk);
	__u32 alpha = ca->alpha, marked, all, step;

	if (before(tp->snd_una, ca->window_end))
		return;
	marked = tp->delivered_ce - ca->delivered_ce;
	all = tp->delivered - ca->delivered;
	/* A remainder below the gain's resolution would never fade. */
	step = alpha >> fanin_gain_shift;
	alpha -= step ? step : alpha;
	if (marked) {
		__u32 share = (__u32)(((__u64)marked << (10 - fanin_gain_shift)) / (all ? all : 1));

		alpha += share;
		if (alpha > ALPHA_MAX)
			alpha = ALPHA_MAX;
	}
	ca->alpha = alpha;
	begin_window(tp, ca);
}

/* RFC 8257 section 3.5: a loss is answered as in any TCP, by half (dctcp_react_to_loss). */
static __always_inline void halve(struct sock *sk)
{
	struct tcp_sock *tp = tcp_sk(sk);
	__u32 half = tp->snd_cwnd >> 1;

	state(sk)->loss_cwnd = tp->snd_cwnd;
	tp->snd_ssthresh = half > CWND_MIN ? half : CWND_MIN;
}

/*
 * A timeout is the event of a loss: tcp_enter_loss sends it with the old window. When it sets the state, the window
 * is one segment already.
 */
SEC("struct_ops/dctcp_set_state")
void BPF_PROG(dctcp_set_state, struct sock *sk, __u8 new_state)
{
	if (new_state == TCP_CA_RECOVERY)
		halve(sk);
}

/* RFC 8257 section 3.2: when the marks begin or end, what was received before is acknowledged at once with its own state. */
static __always_inline void mark_seen(struct sock *sk, __u32 ce)
{
	struct tcp_sock *tp = tcp_sk(sk);
	struct dctcp *ca = state(sk);

	if (ca->ce_state != ce) {
		/* The kernel keeps a delayed acknowledgement as a timer. */
		if (inet_csk(sk)->icsk_ack.pending & ICSK_ACK_TIMER) {
			if (ca->ce_state)
				tp->ecn_flags |= TCP_ECN_DEMAND_CWR;
			else
				tp->ecn_flags &= ~TCP_ECN_DEMAND_CWR;
			bpf_tcp_send_ack(tp, ca->prior_rcv_nxt);
		}
		/* A delayed ACK would leave two segments outstanding at a lost tail, and the sender would probe too soon. */
		inet_csk(sk)->icsk_ack.pending |= ICSK_ACK_NOW;
		ca->ce_state = ce;
	}
	ca->prior_rcv_nxt = tp->rcv_nxt;
	if (ce)
		tp->ecn_flags |= TCP_ECN_DEMAND_CWR;
	else
		tp->ecn_flags &= ~TCP_ECN_DEMAND_CWR;
}

SEC("struct_ops/dctcp_event")
void BPF_PROG(dctcp_event, struct sock *sk, int event)
{
	if (event == CA_EVENT_ECN_IS_CE)
		mark_seen(sk, 1);
	else if (event == CA_EVENT_ECN_NO_CE)
		mark_seen(sk, 0);
	else if (event == CA_EVENT_LOSS)
		halve(sk);
}

SEC("struct_ops/dctcp_undo")
__u32 BPF_PROG(dctcp_undo, struct sock *sk)
{
	const struct tcp_sock *tp = tcp_sk(sk);
	__u32 before_loss = state(sk)->loss_cwnd;

	return tp->snd_cwnd > before_loss ? tp->snd_cwnd : before_loss;
}

extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;

SEC("struct_ops/dctcp_avoid")
void BPF_PROG(dctcp_avoid, struct sock *sk, __u32 ack, __u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
}

SEC(".struct_ops.link")
struct tcp_congestion_ops fanin_dctcp = {
	.init = (void *)dctcp_init,
	.in_ack_event = (void *)dctcp_ack,
	.cwnd_event = (void *)dctcp_event,
	.ssthresh = (void *)dctcp_ssthresh,
	.cong_avoid = (void *)dctcp_avoid,
	.undo_cwnd = (void *)dctcp_undo,
	.set_state = (void *)dctcp_set_state,
	.flags = TCP_CONG_NEEDS_ECN | TCP_CONG_NON_RESTRICTED,
	.name = "fanin_dctcp",
};
