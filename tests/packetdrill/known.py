"""The scripts of others that the model is known to fail, by file name, with the reason.

"Here" is Linux 6.18. `docs/packetdrill.md` has more about each.
"""

KNOWN = {
    # google/packetdrill
    "cwnd-moderation-ecn-enter-cwr-no-moderation-700.pkt": "the window is 5 after the mark, as here",
    "fr-4pkt-fack-last-mss.pkt": "written for another tick than 4 ms",
    "gro-mss-option.pkt": "needs receive offload of the device",
    "shutdown-rdwr-write-queue-close.pkt": "written for another tick than 4 ms",
    "invalid_ack.pkt": "a segment with a wrong acknowledgement is answered at once, as here",
    # The kernel's selftests
    "tcp_ooo-before-and-after-accept.pkt": "the receive window grows by simplified rules",
    "tcp_ooo_rcv_mss.pkt": "the receive window grows by simplified rules",
}
