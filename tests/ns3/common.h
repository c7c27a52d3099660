// Parts of the programs that play a scenario of Fanin in ns-3: links with fair ties, and the settings of TCP in the profile
// `ns3-newreno`.

#pragma once

#include <cstdint>
#include <functional>

#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

// A link that delivers each frame up to `jitter` picoseconds late. ns-3 serves the occurrences of one instant in the
// order of scheduling; a picosecond decides by chance instead.
class FairChannel : public PointToPointChannel {
  public:
    static TypeId GetTypeId() {
        static TypeId id =
            TypeId("FairChannel").SetParent<PointToPointChannel>().AddConstructor<FairChannel>();
        return id;
    }
    bool TransmitStart(Ptr<const Packet> packet, Ptr<PointToPointNetDevice> from, Time on_wire) override {
        if (loses && loses(packet, from)) {
            return true;
        }
        on_wire += PicoSeconds(static_cast<int64_t>(random_->GetValue(0.0, jitter)));
        return PointToPointChannel::TransmitStart(packet, from, on_wire);
    }

    static inline double jitter = 1000.0;
    // Returns true for a frame that its link loses.
    static inline std::function<bool(Ptr<const Packet>, Ptr<PointToPointNetDevice>)> loses;

  private:
    Ptr<UniformRandomVariable> random_ = CreateObject<UniformRandomVariable>();
};

// TCP as in the profile `ns3-newreno`: no SACK, no timestamps, no delayed acknowledgements.
struct TcpSettings {
    uint32_t mss = 1460;
    uint32_t initial_window = 10;
    Time rto_min = MilliSeconds(200);
    // Of the sockets, so large that no window ends there.
    uint32_t socket_buffer = 1 << 20;

    void Apply() const {
        Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::TcpNewReno"));
        Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(false));
        Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
        Config::SetDefault("ns3::TcpSocketBase::LimitedTransmit", BooleanValue(true));
        Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(rto_min));
        Config::SetDefault("ns3::TcpSocketBase::ClockGranularity", TimeValue(MicroSeconds(1)));
        Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(mss));
        Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(initial_window));
        Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
        Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(socket_buffer));
        Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(socket_buffer));
        // The default of 6 gives a connection up that has been unlucky for a while.
        Config::SetDefault("ns3::TcpSocket::DataRetries", UintegerValue(1 << 30));
        Config::SetDefault("ns3::DropTailQueue<Packet>::MaxSize", StringValue("100MB"));
    }
};

// Counts a socket's timeouts: each doubles the RTO, which no acknowledgement raises as long as delays are far below `rto_min`.
inline void CountTimeouts(Ptr<Socket> socket, uint64_t& count) {
    DynamicCast<TcpSocketBase>(socket)->TraceConnectWithoutContext(
        "RTO", Callback<void, Time, Time>([&count](Time before, Time after) { count += after >= before + before; }));
}
