// The classical incast in ns-3: one client asks N servers behind one switch for a block each, and asks again when
// all have answered. No round begins after `seconds`; the last one ends. Prints one line: senders, segment size, seed,
// goodput in Mb/s over all rounds, drops, rounds, timeouts.
//
//   incast --senders=16 --mss=1460 --seed=1 --seconds=5
//
// With `--lost=3,8` it loses the fourth and ninth data segment of the first server. It prints a line for each segment that
// this server sends: time in ns, offset, bytes.
//
// Settings are those of scenarios/incast.toml with the profile `ns3-newreno`.

#include <cstdint>
#include <iostream>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "common.h"

namespace {

constexpr uint32_t kRequestBytes = 64;

uint64_t drops = 0, timeouts = 0;

// The data segments of one device that its link loses, by their number.
struct Losses {
    Ptr<PointToPointNetDevice> sender;
    std::set<uint64_t> numbers;
    uint64_t count = 0;

    // Prints a data segment of the device. Returns true if it is lost.
    bool Loses(Ptr<const Packet> packet, Ptr<PointToPointNetDevice> from) {
        PppHeader ppp;
        Ipv4Header ip;
        TcpHeader tcp;
        Ptr<Packet> rest = packet->Copy();
        if (numbers.empty() || from != sender || rest->RemoveHeader(ppp) == 0 || rest->RemoveHeader(ip) == 0 ||
            rest->RemoveHeader(tcp) == 0 || rest->GetSize() == 0) {
            return false;
        }
        std::cout << Simulator::Now().GetPicoSeconds() / 1000 << ' ' << tcp.GetSequenceNumber().GetValue() - 1 << ' '
                  << rest->GetSize() << '\n';
        return numbers.count(count++) > 0;
    }
} losses;

// One server's end of its connection: answers each request with `block` bytes after a random time.
class Server {
  public:
    Server(Ptr<Node> node, uint16_t port, uint32_t block, double delay_us_max)
        : block_(block), delay_ps_max_(delay_us_max * 1e6) {
        delay_ = CreateObject<UniformRandomVariable>();
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
        CountTimeouts(socket, timeouts);
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
            auto delay = PicoSeconds(static_cast<int64_t>(delay_->GetValue(0.0, delay_ps_max_)));
            Simulator::Schedule(delay, &Server::Answer, this);
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
    double delay_ps_max_;
    uint64_t asked_ = 0;
    uint64_t unsent_ = 0;
};

// The client: a barrier over all its connections.
class Client {
  public:
    Client(Ptr<Node> node, const std::vector<Ipv4Address>& servers, uint16_t port, uint32_t block,
           Time until, uint32_t requests, Time gap)
        : block_(block), until_(until), requests_(requests), gap_(gap), missing_(servers.size(), 0) {
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
            missing_[i] = requests_ * block_;
            sockets_[i]->Send(Create<Packet>(kRequestBytes));
            for (uint32_t request = 1; request < requests_; ++request) {
                Simulator::Schedule(gap_ * request, [this, i]() { sockets_[i]->Send(Create<Packet>(kRequestBytes)); });
            }
        }
    }

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
            missing_[index] -= packet->GetSize();
            if (missing_[index] == 0 && --waiting_ == 0) {
                ++rounds;
                if (Simulator::Now() >= until_) {
                    Simulator::Stop();
                    return;
                }
                Ask();
            }
        }
    }

    uint32_t block_;
    Time until_;
    uint32_t requests_;
    Time gap_;
    std::vector<Ptr<Socket>> sockets_;
    std::vector<uint32_t> missing_;
    uint32_t waiting_ = 0;
};

void HandleDrop(Ptr<const Packet>) { ++drops; }

}  // namespace

int main(int argc, char* argv[]) {
    uint32_t senders = 16, mss = 1460, seed = 1, buffer = 64000, block = 256000, requests = 1, gap_ns = 0;
    double seconds = 5.0, delay_us_max = 100.0;
    Time::SetResolution(Time::PS);
    CommandLine command(__FILE__);
    command.AddValue("senders", "servers", senders);
    command.AddValue("mss", "TCP payload of a segment, bytes", mss);
    command.AddValue("seed", "run number", seed);
    command.AddValue("buffer", "switch port's queue, bytes", buffer);
    command.AddValue("block", "bytes from each server", block);
    command.AddValue("requests", "of a round to each server", requests);
    command.AddValue("gap", "time between two of them, ns", gap_ns);
    command.AddValue("seconds", "simulated time", seconds);
    command.AddValue("delay", "largest service delay, microseconds", delay_us_max);
    command.AddValue("jitter", "largest random delay of a frame on a link, ps; 0: ties by scheduling",
                     FairChannel::jitter);
    std::string lost;
    command.AddValue("lost", "numbers of the first server's data segments that are lost, by commas", lost);
    command.Parse(argc, argv);
    std::istringstream words(lost);
    for (std::string word; std::getline(words, word, ',');) {
        losses.numbers.insert(std::stoull(word));
    }
    RngSeedManager::SetRun(seed);

    TcpSettings tcp;
    tcp.mss = mss;
    tcp.Apply();
    FairChannel::loses = [](auto packet, auto from) { return losses.Loses(packet, from); };

    NodeContainer hosts, hub;
    hub.Create(1);
    hosts.Create(senders + 1);
    InternetStackHelper stack;
    stack.Install(hosts);
    stack.Install(hub);
    PointToPointHelper link;
    link.SetDeviceAttribute("DataRate", StringValue("1Gbps"));
    Ipv4AddressHelper address;
    address.SetBase("10.0.0.0", "255.255.255.0");
    std::vector<Ipv4Address> servers;
    TrafficControlHelper traffic_control;
    for (uint32_t i = 0; i <= senders; ++i) {
        NetDeviceContainer devices = link.Install(hub.Get(0), hosts.Get(i));
        auto channel = CreateObject<FairChannel>();
        channel->SetAttribute("Delay", StringValue("25us"));
        DynamicCast<PointToPointNetDevice>(devices.Get(0))->Attach(channel);
        DynamicCast<PointToPointNetDevice>(devices.Get(1))->Attach(channel);
        if (i == 1) {
            losses.sender = DynamicCast<PointToPointNetDevice>(devices.Get(1));
        }
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
    // The handshakes are over long before this.
    const Time start = MilliSeconds(500);
    Client client(hosts.Get(0), servers, port, block, start + Seconds(seconds), requests, NanoSeconds(gap_ns));
    Simulator::Schedule(start, &Client::Ask, &client);
    Simulator::Run();
    const double taken = (Simulator::Now() - start).GetSeconds();
    const double goodput = static_cast<double>(client.rounds) * senders * requests * block * 8 / taken / 1e6;
    std::cout << senders << ' ' << mss << ' ' << seed << ' ' << goodput << ' ' << drops << ' ' << client.rounds << ' '
              << timeouts << std::endl;
    Simulator::Destroy();
    return 0;
}
