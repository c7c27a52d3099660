// A Boost.ASIO server with the framing of fanin-message. "two-reads" reads the header and then the body of each
// message, and writes one reply at a time, as the thesis' AsyncMsg did. "buffered" reads all bytes that are there, and
// writes all replies to them at once.
#include <boost/asio.hpp>
#include <array>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <deque>
#include <memory>
#include <string>
#include <vector>

using boost::asio::ip::tcp;
using boost::system::error_code;

static std::size_t reply_size;

static void append_reply(std::vector<char>& out, std::uint32_t stream) {
    std::uint32_t header[3] = {2, stream, static_cast<std::uint32_t>(reply_size)};
    auto at = out.size();
    out.resize(at + sizeof header + reply_size);
    std::memcpy(out.data() + at, header, sizeof header);
}

struct TwoReads : std::enable_shared_from_this<TwoReads> {
    tcp::socket socket;
    std::array<std::uint32_t, 3> header;
    std::vector<char> body;
    std::deque<std::vector<char>> out;

    explicit TwoReads(tcp::socket s) : socket(std::move(s)) {}
    void start() {
        auto self = shared_from_this();
        boost::asio::async_read(socket, boost::asio::buffer(header), [self](error_code error, std::size_t) {
            if (error) return;
            self->body.resize(self->header[2]);
            boost::asio::async_read(self->socket, boost::asio::buffer(self->body),
                                    [self](error_code error, std::size_t) {
                                        if (error) return;
                                        self->answer();
                                        self->start();
                                    });
        });
    }
    void answer() {
        std::vector<char> reply;
        reply.reserve(12 + reply_size);
        append_reply(reply, header[1]);
        out.push_back(std::move(reply));
        if (out.size() == 1) write();
    }
    void write() {
        auto self = shared_from_this();
        boost::asio::async_write(socket, boost::asio::buffer(out.front()), [self](error_code error, std::size_t) {
            if (error) return;
            self->out.pop_front();
            if (!self->out.empty()) self->write();
        });
    }
};

struct Buffered : std::enable_shared_from_this<Buffered> {
    tcp::socket socket;
    std::vector<char> in = std::vector<char>(65536);
    std::size_t have = 0;
    std::vector<char> out, writing;

    explicit Buffered(tcp::socket s) : socket(std::move(s)) {}
    void start() {
        auto self = shared_from_this();
        socket.async_read_some(boost::asio::buffer(in.data() + have, in.size() - have),
                               [self](error_code error, std::size_t bytes) {
                                   if (error) return;
                                   self->have += bytes;
                                   self->take();
                                   self->start();
                               });
    }
    void take() {
        std::size_t at = 0;
        while (have - at >= 12) {
            std::uint32_t header[3];
            std::memcpy(header, in.data() + at, sizeof header);
            std::size_t whole = 12 + static_cast<std::size_t>(header[2]);
            if (have - at < whole) {
                if (whole + 65536 > in.size()) in.resize(whole + 65536);
                break;
            }
            append_reply(out, header[1]);
            at += whole;
        }
        std::memmove(in.data(), in.data() + at, have - at);
        have -= at;
        if (writing.empty() && !out.empty()) write();
    }
    void write() {
        writing.swap(out);
        auto self = shared_from_this();
        boost::asio::async_write(socket, boost::asio::buffer(writing), [self](error_code error, std::size_t) {
            if (error) return;
            self->writing.clear();
            if (!self->out.empty()) self->write();
        });
    }
};

template <class Connection>
static void accept(tcp::acceptor& acceptor) {
    acceptor.async_accept([&acceptor](error_code error, tcp::socket socket) {
        if (!error) {
            socket.set_option(tcp::no_delay(true));
            std::make_shared<Connection>(std::move(socket))->start();
        }
        accept<Connection>(acceptor);
    });
}

int main(int argc, char** argv) {
    if (argc != 3) return 2;
    reply_size = std::stoul(argv[2]);
    boost::asio::io_context context(1);
    tcp::acceptor acceptor(context, tcp::endpoint(boost::asio::ip::address_v4::loopback(), 0));
    acceptor.listen(4096);
    std::printf("%d\n", acceptor.local_endpoint().port());
    std::fflush(stdout);
    if (std::string(argv[1]) == "two-reads") accept<TwoReads>(acceptor);
    else accept<Buffered>(acceptor);
    context.run();
}
