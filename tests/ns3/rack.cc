// The thesis' rack in ns-3: a supervisor assigns events to the units of the collectors behind one switch. A collector
// requests an event's fragments from all readouts at once, which are behind core routers. Prints one line: the
// events measured, with the mean, median and 99th percentile of their collection times in ms. The drops at the rack's switch, the
// timeouts, and the time of the last event in s follow.
//
// All numbers are arguments, which `rack.py` takes from a scenario: times in ps, rates in b/s, sizes in bytes.

#include <algorithm>
#include <deque>
#include <iostream>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "common.h"

namespace {

// Each connection has a port of its own at both hosts, as ns-3 collects all sockets of a port for each packet. Collector `n`
// has the port `kPort + n` at its readouts and at the supervisor. Readout `n` likewise has this port at its collectors.
constexpr uint16_t kPort = 10000;
// Time between the beginnings of two handshakes, and from the last one to the first event.
const Time kHandshake = MicroSeconds(50), kSettled = MilliSeconds(50);

struct Settings {
    uint32_t readouts, collectors, units, cores, group;
    uint64_t rate_mhz, warmup, duration;
    uint64_t delay_mean, delay_sd, processing;
    uint64_t readout_rate, readout_delay, link_rate, link_delay, uplink_rate, uplink_delay;
    uint64_t supervisor_rate, supervisor_delay;
    uint64_t buffer, uplink_buffer, mss, initial_window, rto_min, seed;
    // Messages, in bytes.
    uint64_t assign, ready, request, answer;
};

// A stream of messages of one size over a connection. The receiver knows the event of each.
struct Stream {
    uint64_t bytes = 0;
    std::deque<uint32_t> events;

    // Counts bytes that were received, and calls `handle` with the event of each complete message.
    template <typename Handle>
    void Receive(uint64_t received, uint64_t size, Handle handle) {
        bytes += received;
        while (bytes >= size) {
            bytes -= size;
            const uint32_t event = events.front();
            events.pop_front();
            handle(event);
        }
    }
};

uint64_t Drain(Ptr<Socket> socket) {
    uint64_t bytes = 0;
    while (Ptr<Packet> packet = socket->Recv()) {
        if (packet->GetSize() == 0) {
            break;
        }
        bytes += packet->GetSize();
    }
    return bytes;
}

void Send(Ptr<Socket> socket, Stream& stream, uint64_t size, uint32_t event) {
    stream.events.push_back(event);
    const int sent = socket->Send(Create<Packet>(size));
    NS_ABORT_MSG_IF(sent < 0 || static_cast<uint64_t>(sent) != size, "a socket's buffer is full");
}

// A connection and its messages, from the side that opens it and back.
struct Connection {
    Ptr<Socket> opener, listener;
    Stream there, back;
};

// The roles: supervisor, collectors, readouts.
class System {
  public:
    System(const Settings& settings, Time start)
        : s_(settings), start_(start), building_(settings.collectors), assigning_(settings.collectors) {
        for (auto& connections : building_) {
            connections.resize(s_.readouts);
        }
        delay_->SetAttribute("Mean", DoubleValue(static_cast<double>(s_.delay_mean)));
        delay_->SetAttribute("Variance", DoubleValue(static_cast<double>(s_.delay_sd) * static_cast<double>(s_.delay_sd)));
        // All units of the first collector, then all of the second.
        for (uint32_t collector = 0; collector < s_.collectors; ++collector) {
            idle_.insert(idle_.end(), s_.units, collector);
        }
        // Handshakes set the RTO, too.
        Simulator::Schedule(start, [this]() { timeouts_ = 0; });
        Simulator::Schedule(start, &System::Fall, this);
    }

    // Opens the connection from a collector to a readout.
    void Request(uint32_t collector, uint32_t readout, Ptr<Node> from, Ptr<Node> to, Time at) {
        Connection& connection = building_[collector][readout];
        Listen(connection, to, kPort + collector, [=, this](uint64_t bytes) {
            building_[collector][readout].there.Receive(
                bytes, s_.request, [&](uint32_t event) { HandleRequest(collector, readout, event); });
        });
        Open(connection, from, kPort + readout, to, kPort + collector, at, [=, this](uint64_t bytes) {
            building_[collector][readout].back.Receive(
                bytes, s_.answer, [&](uint32_t event) { HandleAnswer(collector, event); });
        });
    }

    // Opens the connection from the supervisor to a collector.
    void Supervise(uint32_t collector, Ptr<Node> from, Ptr<Node> to, Time at) {
        Connection& connection = assigning_[collector];
        Listen(connection, to, kPort - 1, [=, this](uint64_t bytes) {
            assigning_[collector].there.Receive(bytes, s_.assign, [&](uint32_t event) { HandleAssign(event); });
        });
        Open(connection, from, kPort + collector, to, kPort - 1, at, [=, this](uint64_t bytes) {
            assigning_[collector].back.Receive(bytes, s_.ready, [&](uint32_t) { HandleReady(collector); });
        });
    }

    uint64_t drops = 0;

    void Print() const {
        std::vector<double> times = times_;
        std::sort(times.begin(), times.end());
        double sum = 0;
        for (double time : times) {
            sum += time;
        }
        const auto quantile = [&](double share) {
            return times[std::min<size_t>(times.size() - 1, static_cast<size_t>(share * times.size()))];
        };
        std::cout << times.size() << ' ' << sum / times.size() << ' ' << quantile(0.5) << ' ' << quantile(0.99) << ' '
                  << drops << ' ' << timeouts_ << ' ' << (Simulator::Now() - start_).GetSeconds() << std::endl;
    }

  private:
    using Received = std::function<void(uint64_t)>;

    struct Event {
        uint32_t collector, missing;
        Time assigned, began;
    };

    void Open(Connection& connection, Ptr<Node> from, uint16_t port, Ptr<Node> to, uint16_t to_port, Time at,
              Received handle) {
        Ptr<Socket> socket = Socket::CreateSocket(from, TcpSocketFactory::GetTypeId());
        connection.opener = socket;
        CountTimeouts(socket, timeouts_);
        socket->Bind(InetSocketAddress(Ipv4Address::GetAny(), port));
        socket->SetRecvCallback(Callback<void, Ptr<Socket>>([=](Ptr<Socket> ready) { handle(Drain(ready)); }));
        const InetSocketAddress address(to->GetObject<Ipv4>()->GetAddress(1, 0).GetLocal(), to_port);
        Simulator::Schedule(at, [=]() { NS_ABORT_MSG_IF(socket->Connect(address) != 0, "no connection"); });
    }

    // Listens for one connection.
    void Listen(Connection& connection, Ptr<Node> node, uint16_t port, Received handle) {
        Ptr<Socket> listener = Socket::CreateSocket(node, TcpSocketFactory::GetTypeId());
        listener->Bind(InetSocketAddress(Ipv4Address::GetAny(), port));
        listener->Listen();
        listener->SetAcceptCallback(
            MakeNullCallback<bool, Ptr<Socket>, const Address&>(),
            Callback<void, Ptr<Socket>, const Address&>([=, this, &connection](Ptr<Socket> socket, const Address&) {
                connection.listener = socket;
                socket->SetRecvCallback(Callback<void, Ptr<Socket>>([=](Ptr<Socket> ready) { handle(Drain(ready)); }));
                CountTimeouts(socket, timeouts_);
                Simulator::ScheduleNow([=]() { listener->Close(); });
            }));
    }

    // An event falls due.
    void Fall() {
        ++due_;
        ++fallen_;
        Assign();
        const Time next = start_ + PicoSeconds(static_cast<int64_t>(fallen_ * 1'000'000'000'000'000ULL / s_.rate_mhz));
        if (next < start_ + PicoSeconds(s_.warmup + s_.duration)) {
            Simulator::Schedule(next - Simulator::Now(), &System::Fall, this);
        }
    }

    // Assigns events to the units that have been idle longest, until the measured time is over.
    void Assign() {
        while (due_ > 0 && !idle_.empty() && !IsOver()) {
            --due_;
            const uint32_t collector = idle_.front();
            idle_.pop_front();
            events_.push_back({collector, s_.readouts, Simulator::Now(), Time()});
            ++open_;
            Connection& connection = assigning_[collector];
            Send(connection.opener, connection.there, s_.assign, events_.size() - 1);
        }
    }

    bool IsOver() const { return Simulator::Now() >= start_ + PicoSeconds(s_.warmup + s_.duration); }

    void HandleAssign(uint32_t event) {
        Event& one = events_[event];
        one.began = Simulator::Now();
        for (Connection& connection : building_[one.collector]) {
            Send(connection.opener, connection.there, s_.request, event);
        }
    }

    void HandleRequest(uint32_t collector, uint32_t readout, uint32_t event) {
        const auto wait = static_cast<int64_t>(std::max(0.0, delay_->GetValue()));
        Simulator::Schedule(PicoSeconds(wait), [=, this]() {
            Connection& connection = building_[collector][readout];
            Send(connection.listener, connection.back, s_.answer, event);
        });
    }

    void HandleAnswer(uint32_t collector, uint32_t event) {
        Event& one = events_[event];
        if (--one.missing > 0) {
            return;
        }
        if (one.assigned >= start_ + PicoSeconds(s_.warmup)) {
            times_.push_back((Simulator::Now() - one.began).GetSeconds() * 1e3);
        }
        --open_;
        if (IsOver() && open_ == 0) {
            Simulator::Stop();
            return;
        }
        Simulator::Schedule(PicoSeconds(s_.processing), [=, this]() {
            Connection& connection = assigning_[collector];
            Send(connection.listener, connection.back, s_.ready, event);
        });
    }

    void HandleReady(uint32_t collector) {
        idle_.push_back(collector);
        Assign();
    }

    const Settings s_;
    const Time start_;
    std::vector<std::vector<Connection>> building_;
    std::vector<Connection> assigning_;
    std::deque<uint32_t> idle_;
    std::vector<Event> events_;
    std::vector<double> times_;
    uint64_t due_ = 0, fallen_ = 0, open_ = 0, timeouts_ = 0;
    Ptr<NormalRandomVariable> delay_ = CreateObject<NormalRandomVariable>();
};

// A network of point-to-point links with static routes.
class Net {
  public:
    Net() { stack_.SetRoutingHelper(Ipv4StaticRoutingHelper()); }

    Ptr<Node> Add() {
        Ptr<Node> node = CreateObject<Node>();
        stack_.Install(node);
        return node;
    }

    struct Link {
        Ptr<PointToPointNetDevice> devices[2];
        Ipv4Address addresses[2];
        uint32_t interfaces[2];
    };

    // Joins two nodes by a link of the network `base`/30.
    Link Join(Ptr<Node> a, Ptr<Node> b, const std::string& base, uint64_t rate, uint64_t delay) {
        PointToPointHelper helper;
        helper.SetDeviceAttribute("DataRate", DataRateValue(DataRate(rate)));
        NetDeviceContainer devices = helper.Install(a, b);
        auto channel = CreateObject<FairChannel>();
        channel->SetAttribute("Delay", TimeValue(PicoSeconds(delay)));
        Ipv4AddressHelper address;
        address.SetBase(base.c_str(), "255.255.255.252");
        Link link;
        Ipv4InterfaceContainer interfaces = address.Assign(devices);
        TrafficControlHelper().Uninstall(devices);
        for (int end = 0; end < 2; ++end) {
            link.devices[end] = DynamicCast<PointToPointNetDevice>(devices.Get(end));
            link.devices[end]->Attach(channel);
            link.addresses[end] = interfaces.GetAddress(end);
            link.interfaces[end] = interfaces.Get(end).second;
        }
        return link;
    }

    // Sends frames for `network` over a link, from its end `end`.
    static void Route(Ptr<Node> node, const std::string& network, const std::string& mask, const Link& link, int end) {
        Ipv4StaticRoutingHelper().GetStaticRouting(node->GetObject<Ipv4>())->AddNetworkRouteTo(
            Ipv4Address(network.c_str()), Ipv4Mask(mask.c_str()), link.addresses[1 - end], link.interfaces[end]);
    }

  private:
    InternetStackHelper stack_;
};

std::string Dotted(uint32_t second, uint32_t third, uint32_t fourth) {
    std::ostringstream text;
    text << "10." << second << '.' << third << '.' << fourth;
    return text.str();
}

// Limits the queue of a switch's port.
void Limit(Ptr<PointToPointNetDevice> device, uint64_t bytes, System& system) {
    auto queue = CreateObject<DropTailQueue<Packet>>();
    queue->SetMaxSize(QueueSize(QueueSizeUnit::BYTES, bytes));
    device->SetQueue(queue);
    queue->TraceConnectWithoutContext(
        "Drop", Callback<void, Ptr<const Packet>>([&system](Ptr<const Packet>) { ++system.drops; }));
}

}  // namespace

int main(int argc, char* argv[]) {
    Settings s{};
    Time::SetResolution(Time::PS);
    CommandLine command(__FILE__);
    command.AddValue("readouts", "readout hosts", s.readouts);
    command.AddValue("collectors", "collector hosts", s.collectors);
    command.AddValue("units", "processing units of a collector", s.units);
    command.AddValue("cores", "core routers", s.cores);
    command.AddValue("group", "readouts of a group, which is split among the cores", s.group);
    command.AddValue("rate_mhz", "events in 1000 s", s.rate_mhz);
    command.AddValue("warmup", "time before the measurement", s.warmup);
    command.AddValue("duration", "measured time", s.duration);
    command.AddValue("delay_mean", "mean of a readout's delay", s.delay_mean);
    command.AddValue("delay_sd", "its standard deviation", s.delay_sd);
    command.AddValue("processing", "processing time of an event", s.processing);
    command.AddValue("readout_rate", "rate of a readout's link", s.readout_rate);
    command.AddValue("readout_delay", "its delay", s.readout_delay);
    command.AddValue("link_rate", "rate of a collector's link", s.link_rate);
    command.AddValue("link_delay", "its delay", s.link_delay);
    command.AddValue("uplink_rate", "rate of the links to the cores", s.uplink_rate);
    command.AddValue("uplink_delay", "their delay", s.uplink_delay);
    command.AddValue("supervisor_rate", "rate of the supervisor's links", s.supervisor_rate);
    command.AddValue("supervisor_delay", "their delay", s.supervisor_delay);
    command.AddValue("buffer", "queue of the rack's switch to a collector", s.buffer);
    command.AddValue("uplink_buffer", "its queue to a core", s.uplink_buffer);
    command.AddValue("mss", "TCP payload of a segment", s.mss);
    command.AddValue("initial_window", "segments", s.initial_window);
    command.AddValue("rto_min", "smallest retransmission timeout", s.rto_min);
    command.AddValue("seed", "run number", s.seed);
    command.AddValue("assign", "bytes of an assignment", s.assign);
    command.AddValue("ready", "bytes of a unit's report", s.ready);
    command.AddValue("request", "bytes of a request", s.request);
    command.AddValue("answer", "bytes of an answer", s.answer);
    command.AddValue("jitter", "largest random delay of a frame on a link, ps; 0: ties by scheduling",
                     FairChannel::jitter);
    command.Parse(argc, argv);
    NS_ABORT_MSG_IF(s.readouts == 0 || s.cores == 0 || s.group == 0 || s.rate_mhz == 0, "arguments are missing");
    RngSeedManager::SetRun(s.seed);

    TcpSettings tcp;
    tcp.mss = s.mss;
    tcp.initial_window = s.initial_window;
    tcp.rto_min = PicoSeconds(s.rto_min);
    tcp.socket_buffer = 16 << 20;
    tcp.Apply();

    System system(s, kHandshake * (s.collectors * (s.readouts + 1)) + kSettled);
    Net net;
    Ptr<Node> tor = net.Add(), supervisor = net.Add();
    std::vector<Ptr<Node>> cores, collectors, readouts;
    std::vector<Net::Link> to_tor, to_supervisor;
    for (uint32_t core = 0; core < s.cores; ++core) {
        cores.push_back(net.Add());
        to_tor.push_back(net.Join(cores[core], tor, Dotted(5, core, 0), s.uplink_rate, s.uplink_delay));
        Limit(to_tor[core].devices[1], s.uplink_buffer, system);
        to_supervisor.push_back(
            net.Join(cores[core], supervisor, Dotted(3, core, 0), s.supervisor_rate, s.supervisor_delay));
        Net::Route(cores[core], "10.2.0.0", "255.255.0.0", to_tor[core], 0);
        Net::Route(tor, Dotted(3, core, 0), "255.255.255.0", to_tor[core], 1);
    }
    for (uint32_t collector = 0; collector < s.collectors; ++collector) {
        Ptr<Node> host = net.Add();
        const std::string base = Dotted(2, collector / 64, collector % 64 * 4);
        const Net::Link link = net.Join(tor, host, base, s.link_rate, s.link_delay);
        Limit(link.devices[0], s.buffer, system);
        Net::Route(host, "0.0.0.0", "0.0.0.0", link, 1);
        // As `per-destination` spreads the flows of a host with a link to each core: by the number of the collector's host.
        const uint32_t core = (1 + s.readouts + collector) % s.cores;
        Net::Route(supervisor, base, "255.255.255.252", to_supervisor[core], 1);
        collectors.push_back(host);
    }
    uint32_t aggregation = 0;
    for (uint32_t first = 0; first < s.readouts; first += s.group) {
        const uint32_t members = std::min(s.group, s.readouts - first), part_size = (members + s.cores - 1) / s.cores;
        for (uint32_t begin = 0, part = 0; begin < members; begin += part_size, ++part, ++aggregation) {
            Ptr<Node> node = net.Add();
            const Net::Link up =
                net.Join(node, cores[part], Dotted(4, aggregation, 0), s.uplink_rate, s.uplink_delay);
            const std::string network = Dotted(1, aggregation, 0), mask = "255.255.255.0";
            Net::Route(node, "0.0.0.0", "0.0.0.0", up, 0);
            Net::Route(cores[part], network, mask, up, 1);
            Net::Route(tor, network, mask, to_tor[part], 1);
            const uint32_t end = std::min(begin + part_size, members);
            for (uint32_t member = begin; member < end; ++member) {
                Ptr<Node> host = net.Add();
                const std::string base = Dotted(1, aggregation, (member - begin) * 4);
                const Net::Link link = net.Join(node, host, base, s.readout_rate, s.readout_delay);
                Net::Route(host, "0.0.0.0", "0.0.0.0", link, 1);
                readouts.push_back(host);
            }
        }
    }
    Time at;
    for (uint32_t collector = 0; collector < s.collectors; ++collector) {
        system.Supervise(collector, supervisor, collectors[collector], at += kHandshake);
        for (uint32_t readout = 0; readout < s.readouts; ++readout) {
            system.Request(collector, readout, collectors[collector], readouts[readout], at += kHandshake);
        }
    }
    Simulator::Run();
    system.Print();
    Simulator::Destroy();
    return 0;
}
