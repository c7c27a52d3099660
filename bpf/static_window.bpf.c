/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * A congestion window that never changes (Jereczek et al., ICC 2015, section IV.C). With few enough segments in
 * flight from all sources together, no frame is lost. After a timeout the kernel starts from one segment by
 * itself; the first acknowledgement brings the window back.
 */
#include "tcp.h"

char _license[] SEC("license") = "Dual BSD/GPL";

/* Segments; user space may change it at any time, and every connection follows with its next acknowledgement. */
__u32 fanin_window = 2;

static __always_inline void hold(struct sock *sk)
{
	tcp_sk(sk)->snd_cwnd = fanin_window;
}

SEC("struct_ops/static_init")
void BPF_PROG(static_init, struct sock *sk)
{
	hold(sk);
}

/* With cong_control the kernel leaves the window alone in recovery too (tcp_cong_control). */
SEC("struct_ops/static_control")
void BPF_PROG(static_control, struct sock *sk, __u32 ack, int flag, const struct rate_sample *rs)
{
	hold(sk);
}

SEC("struct_ops/static_ssthresh")
__u32 BPF_PROG(static_ssthresh, struct sock *sk)
{
	return fanin_window;
}

SEC("struct_ops/static_undo")
__u32 BPF_PROG(static_undo, struct sock *sk)
{
	return fanin_window;
}

SEC(".struct_ops.link")
struct tcp_congestion_ops fanin_static = {
	.init = (void *)static_init,
	.cong_control = (void *)static_control,
	.ssthresh = (void *)static_ssthresh,
	.undo_cwnd = (void *)static_undo,
	.flags = TCP_CONG_NON_RESTRICTED,
	.name = "fanin_static",
};
