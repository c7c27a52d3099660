// Two cases of `fanin sim` in htsim, for a comparison of speed: the classical incast without loss, and the traffic of the
// thesis' rack. Usage: cases incast SECONDS | cases rack SECONDS
//
// Prints one line: packet-hops, bytes delivered, drops, and seconds of processor time in the event loop. A packet-hop is a
// packet put on a link. htsim's TCP has no SACK, no delayed acknowledgements, no receive window and no requests. Each
// source has an answer's bytes more to send when a request would have reached it.

#include <cstdlib>
#include <ctime>
#include <iostream>
#include <sstream>
#include <vector>

#include "config.h"
#include "eventlist.h"
#include "network.h"
#include "pipe.h"
#include "queue.h"
#include "tcp.h"

namespace {

// The links of both cases; the buffers are larger than all that is ever in flight.
const linkspeed_bps LINK = speedFromMbps(uint64_t(1000));
const linkspeed_bps TRUNK = speedFromMbps(uint64_t(10000));
const mem_b BUFFER = 1000000000;

struct Line {
    Queue* queue;
    Pipe* pipe;
    Line(linkspeed_bps rate, simtime_picosec delay, EventList& events)
        : queue(new Queue(rate, BUFFER, events, nullptr)), pipe(new Pipe(delay, events)) {}
    void append_to(Route& route) const {
        route.push_back(queue);
        route.push_back(pipe);
    }
};

struct Flow {
    TcpSrc* source;
    uint64_t wanted = 0;
    void send(uint64_t bytes) {
        wanted += bytes;
        source->_flow_size = wanted;
        source->send_packets();
    }
    bool is_done() const { return source->_last_acked >= wanted; }
};

Flow connect(EventList& events, const std::vector<Line*>& there, const std::vector<Line*>& back,
             uint32_t window) {
    Flow flow;
    flow.source = new TcpSrc(nullptr, nullptr, events);
    flow.source->_flow_size = 0;
    flow.source->_maxcwnd = window * Packet::data_packet_size();
    auto* sink = new TcpSink();
    auto* out = new Route();
    for (auto* line : there) line->append_to(*out);
    out->push_back(sink);
    auto* in = new Route();
    for (auto* line : back) line->append_to(*in);
    in->push_back(flow.source);
    flow.source->connect(*out, *in, *sink, 0);
    return flow;
}

// 16 servers send 256 kB each, again when all have arrived.
struct Incast : EventSource {
    std::vector<Flow> flows;
    uint64_t rounds = 0;
    explicit Incast(EventList& events) : EventSource(events, "incast") {
        auto* last = new Line(LINK, timeFromUs(uint32_t(25)), events);
        auto* first_back = new Line(LINK, timeFromUs(uint32_t(25)), events);
        for (int server = 0; server < 16; ++server) {
            auto* out = new Line(LINK, timeFromUs(uint32_t(25)), events);
            auto* back = new Line(LINK, timeFromUs(uint32_t(25)), events);
            flows.push_back(connect(events, {out, last}, {first_back, back}, 300));
        }
        events.sourceIsPending(*this, timeFromMs(1));
    }
    void doNextEvent() override {
        bool done = true;
        for (auto& flow : flows) done = done && flow.is_done();
        if (done) {
            rounds += 1;
            for (auto& flow : flows) flow.send(256000);
        }
        eventlist().sourceIsPendingRel(*this, timeFromUs(uint32_t(100)));
    }
};

// 160 readouts, 39 collectors in turn, 1 kHz, 13.2 kB from each readout; two trunks to the rack.
struct Rack : EventSource {
    std::vector<std::vector<Flow>> flows;
    uint64_t events_sent = 0;
    explicit Rack(EventList& events) : EventSource(events, "rack") {
        const simtime_picosec delay = timeFromUs(uint32_t(1));
        std::vector<Line*> out, back, trunks, trunks_back, down, up;
        for (int readout = 0; readout < 160; ++readout) {
            out.push_back(new Line(LINK, delay, events));
            back.push_back(new Line(LINK, delay, events));
        }
        for (int trunk = 0; trunk < 2; ++trunk) {
            trunks.push_back(new Line(TRUNK, delay, events));
            trunks_back.push_back(new Line(TRUNK, delay, events));
        }
        for (int collector = 0; collector < 39; ++collector) {
            down.push_back(new Line(LINK, delay, events));
            up.push_back(new Line(LINK, delay, events));
            flows.emplace_back();
            for (int readout = 0; readout < 160; ++readout) {
                const int trunk = readout / 80;
                flows.back().push_back(connect(events, {out[readout], trunks[trunk], down[collector]},
                                               {up[collector], trunks_back[trunk], back[readout]}, 10));
            }
        }
        events.sourceIsPending(*this, timeFromMs(1));
    }
    void doNextEvent() override {
        for (auto& flow : flows[events_sent % flows.size()]) flow.send(13200);
        events_sent += 1;
        eventlist().sourceIsPendingRel(*this, timeFromMs(1));
    }
};

double cpu_s() { return double(std::clock()) / CLOCKS_PER_SEC; }

}  // namespace

int main(int count, char** arguments) {
    const string which = count > 1 ? arguments[1] : "";
    const double seconds = count > 2 ? std::atof(arguments[2]) : 0;
    if ((which != "incast" && which != "rack") || seconds <= 0) {
        std::cerr << "usage: cases incast|rack SECONDS\n";
        return 2;
    }
    Packet::set_packet_size(1460);
    auto& events = EventList::getTheEventList();
    events.setEndtime(timeFromSec(seconds));
    TcpRtxTimerScanner scanner(timeFromMs(10), events);
    std::vector<Flow*> all;
    std::ostringstream chatter;
    auto* screen = std::cout.rdbuf(chatter.rdbuf());
    Incast* incast = which == "incast" ? new Incast(events) : nullptr;
    Rack* rack = which == "rack" ? new Rack(events) : nullptr;
    if (incast != nullptr) {
        for (auto& flow : incast->flows) all.push_back(&flow);
    }
    if (rack != nullptr) {
        for (auto& flows : rack->flows) {
            for (auto& flow : flows) all.push_back(&flow);
        }
    }
    for (auto* flow : all) scanner.registerTcp(*flow->source);
    const double start = cpu_s();
    while (events.doNextEvent()) {
    }
    const double spent = cpu_s() - start;
    std::cout.rdbuf(screen);
    // Each data packet crosses these links, and its acknowledgement as many.
    const uint64_t links = rack != nullptr ? 3 : 2;
    uint64_t packets = 0, bytes = 0;
    for (auto* flow : all) {
        packets += flow->source->_packets_sent / flow->source->_mss;
        bytes += flow->source->_last_acked;
    }
    uint64_t drops = 0;
    for (auto* flow : all) drops += flow->source->_drops;
    std::cout << packets * links * 2 << " " << bytes << " " << drops << " " << spent << "\n";
    return 0;
}
