// The classical incast in ns-3: one client asks N servers behind one switch for a block each, and asks again when
// all have answered. Prints one line: senders, segment size, seed, goodput in Mb/s, drops, rounds.
//
//   incast --senders=16 --mss=1460 --seed=1 --seconds=5
//
// Settings are those of scenarios/incast.toml with the profile `ns3-newreno`.

#include <cstdint>
#include <functional>
#include <iostream>
#include <vector>

#include "ns3/applications-module.h"
#include "ns3/core-module.h"
#include "ns3/internet-module.h"
#include "ns3/network-module.h"
#include "ns3/point-to-point-module.h"
#include "ns3/traffic-control-module.h"

using namespace ns3;

namespace {

constexpr uint32_t kRequestBytes = 64;

uint64_t drops = 0;

// One server's end of its connection: answers each request with `block` bytes after a random time.
class Server {
  public:
    Server(Ptr<Node> node, uint16_t port, uint32_t block, double delay_us_max) : block_(block) {
        delay_ = CreateObject<UniformRandomVariable>();
        delay_->SetAttribute("Min", DoubleValue(0.0));
        delay_->SetAttribute("Max", DoubleValue(delay_us_max));
        listener_ = Socket::CreateSocket(node, TcpSocketFactory::GetTypeId());
        listener_->Bind(InetSocketAddress(Ipv4Address::GetAny(), port));
        listener_->Listen();
        listener_->SetAcceptCallback(MakeNullCallback<bool, Ptr<Socket>, const Address&>(),
                                     MakeCallback(&Server::HandleAccept, this));
    }

  private:
    void HandleAccept(Ptr<Socket> socket, const Address&) {
        socket_ = socket;
        socket_->SetRecvCallback(MakeCallback(&Server::HandleRead, this));
        socket_->SetSendCallback(MakeCallback(&Server::HandleRoom, this));
    }

    void HandleRead(Ptr<Socket> socket) {
        while (Ptr<Packet> packet = socket->Recv()) {
            if (packet->GetSize() == 0) {
                break;
            }
            asked_ += packet->GetSize();
        }
        while (asked_ >= kRequestBytes) {
            asked_ -= kRequestBytes;
            Simulator::Schedule(MicroSeconds(delay_->GetValue()), &Server::Answer, this);
        }
    }

    void Answer() {
        unsent_ += block_;
        Write();
    }

    void HandleRoom(Ptr<Socket>, uint32_t) { Write(); }

    void Write() {
        while (unsent_ > 0) {
            uint32_t room = std::min<uint64_t>(unsent_, socket_->GetTxAvailable());
            if (room == 0) {
                return;
            }
            int sent = socket_->Send(Create<Packet>(room));
            if (sent <= 0) {
                return;
            }
            unsent_ -= sent;
        }
    }

    Ptr<Socket> listener_;
    Ptr<Socket> socket_;
    Ptr<UniformRandomVariable> delay_;
    uint32_t block_;
    uint64_t asked_ = 0;
    uint64_t unsent_ = 0;
};

// The client: a barrier over all its connections.
class Client {
  public:
    Client(Ptr<Node> node, const std::vector<Ipv4Address>& servers, uint16_t port, uint32_t block)
        : block_(block), missing_(servers.size(), 0) {
        for (uint32_t i = 0; i < servers.size(); ++i) {
            Ptr<Socket> socket = Socket::CreateSocket(node, TcpSocketFactory::GetTypeId());
            socket->SetRecvCallback(MakeCallback(&Client::HandleRead, this));
            socket->Connect(InetSocketAddress(servers[i], port));
            sockets_.push_back(socket);
        }
    }

    void Ask() {
        waiting_ = sockets_.size();
        for (uint32_t i = 0; i < sockets_.size(); ++i) {
            missing_[i] = block_;
            sockets_[i]->Send(Create<Packet>(kRequestBytes));
        }
    }

    uint64_t bytes = 0;
    uint64_t rounds = 0;

  private:
    void HandleRead(Ptr<Socket> socket) {
        uint32_t index = 0;
        while (sockets_[index] != socket) {
            ++index;
        }
        while (Ptr<Packet> packet = socket->Recv()) {
            if (packet->GetSize() == 0) {
                break;
            }
            bytes += packet->GetSize();
            missing_[index] -= packet->GetSize();
            if (missing_[index] == 0 && --waiting_ == 0) {
                ++rounds;
                Ask();
            }
        }
    }

    uint32_t block_;
    std::vector<Ptr<Socket>> sockets_;
    std::vector<uint32_t> missing_;
    uint32_t waiting_ = 0;
};

void HandleDrop(Ptr<const Packet>) { ++drops; }

}  // namespace

int main(int argc, char* argv[]) {
    uint32_t senders = 16, mss = 1460, seed = 1, buffer = 64000, block = 256000;
    double seconds = 5.0, delay_us_max = 100.0;
    CommandLine command(__FILE__);
    command.AddValue("senders", "servers", senders);
    command.AddValue("mss", "TCP payload of a segment, bytes", mss);
    command.AddValue("seed", "run number", seed);
    command.AddValue("buffer", "switch port's queue, bytes", buffer);
    command.AddValue("block", "bytes from each server", block);
    command.AddValue("seconds", "simulated time", seconds);
    command.AddValue("delay", "largest service delay, microseconds", delay_us_max);
    command.Parse(argc, argv);
    RngSeedManager::SetRun(seed);

    Config::SetDefault("ns3::TcpL4Protocol::SocketType", StringValue("ns3::TcpNewReno"));
    Config::SetDefault("ns3::TcpSocketBase::Sack", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::Timestamp", BooleanValue(false));
    Config::SetDefault("ns3::TcpSocketBase::LimitedTransmit", BooleanValue(true));
    Config::SetDefault("ns3::TcpSocketBase::MinRto", TimeValue(MilliSeconds(200)));
    Config::SetDefault("ns3::TcpSocketBase::ClockGranularity", TimeValue(MicroSeconds(1)));
    Config::SetDefault("ns3::TcpSocket::SegmentSize", UintegerValue(mss));
    Config::SetDefault("ns3::TcpSocket::InitialCwnd", UintegerValue(10));
    Config::SetDefault("ns3::TcpSocket::DelAckCount", UintegerValue(1));
    Config::SetDefault("ns3::TcpSocket::SndBufSize", UintegerValue(1 << 20));
    Config::SetDefault("ns3::TcpSocket::RcvBufSize", UintegerValue(1 << 20));
    // The default of 6 gives a connection up that has been unlucky for a while.
    Config::SetDefault("ns3::TcpSocket::DataRetries", UintegerValue(1 << 30));
    Config::SetDefault("ns3::DropTailQueue<Packet>::MaxSize", StringValue("100MB"));

    NodeContainer hosts, hub;
    hub.Create(1);
    hosts.Create(senders + 1);
    InternetStackHelper stack;
    stack.Install(hosts);
    stack.Install(hub);
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", StringValue("1Gbps"));
    link.SetChannelAttribute("Delay", StringValue("25us"));
    Ipv4AddressHelper address;
    address.SetBase("10.0.0.0", "255.255.255.0");
    std::vector<Ipv4Address> servers;
    TrafficControlHelper traffic_control;
    for (uint32_t i = 0; i <= senders; ++i) {
        NetDeviceContainer devices = link.Install(hub.Get(0), hosts.Get(i));
        if (i == 0) {
            // Host 0 is the client; its port of the switch is the shallow one.
            auto device = DynamicCast<PointToPointNetDevice>(devices.Get(0));
            auto queue = CreateObject<DropTailQueue<Packet>>();
            queue->SetMaxSize(QueueSize(QueueSizeUnit::BYTES, buffer));
            device->SetQueue(queue);
            queue->TraceConnectWithoutContext("Drop", MakeCallback(&HandleDrop));
        }
        Ipv4InterfaceContainer interfaces = address.Assign(devices);
        traffic_control.Uninstall(devices);
        address.NewNetwork();
        if (i > 0) {
            servers.push_back(interfaces.GetAddress(1));
        }
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();

    constexpr uint16_t port = 5000;
    std::vector<std::unique_ptr<Server>> answering;
    for (uint32_t i = 1; i <= senders; ++i) {
        answering.push_back(std::make_unique<Server>(hosts.Get(i), port, block, delay_us_max));
    }
    Client client(hosts.Get(0), servers, port, block);
    // The handshakes are over long before this.
    const Time start = MilliSeconds(500);
    Simulator::Schedule(start, &Client::Ask, &client);
    Simulator::Stop(start + Seconds(seconds));
    Simulator::Run();
    std::cout << senders << ' ' << mss << ' ' << seed << ' ' << client.bytes * 8 / seconds / 1e6 << ' ' << drops
              << ' ' << client.rounds << std::endl;
    Simulator::Destroy();
    return 0;
}
