//! Established connections, by peer and by the endpoint's index.

use std::collections::HashMap;

use fanin_dataflow::Peer;
use fanin_message::PeerId as Connection;

/// The current connection of each peer.
///
/// A peer has at most one current connection. A younger connection with the same name replaces an older one. The older
/// one keeps its descriptor until the endpoint reports its end, but is no longer current.
#[derive(Debug, Default)]
pub(super) struct ConnectionTable {
    /// Peers of current connections, by the endpoint's index.
    peers: HashMap<usize, Peer>,
    current: HashMap<Peer, CurrentConnection>,
    /// Peers of all connections with a descriptor, by the endpoint's index.
    open: HashMap<usize, Peer>,
}

#[derive(Debug, Clone, Copy)]
struct CurrentConnection {
    connection: Connection,
    /// Version of the messages on this connection.
    version: u16,
}

/// A connection that [`ConnectionTable::remove`] removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct RemovedConnection {
    pub(super) peer: Peer,
    /// True if no younger connection had replaced it.
    pub(super) was_current: bool,
}

impl ConnectionTable {
    /// Makes a connection the current one of its peer. Returns true if it replaces an older one.
    pub(super) fn insert(&mut self, peer: Peer, connection: Connection, version: u16) -> bool {
        self.open.insert(connection.index(), peer);
        self.peers.insert(connection.index(), peer);
        let older = self.current.insert(peer, CurrentConnection { connection, version });
        let older = older.filter(|older| older.connection != connection);
        if let Some(older) = older {
            self.peers.remove(&older.connection.index());
        }
        self.check();
        older.is_some()
    }

    /// Removes a connection that has ended; returns `None` if it was never inserted.
    pub(super) fn remove(&mut self, connection: Connection) -> Option<RemovedConnection> {
        let peer = self.open.remove(&connection.index())?;
        let was_current = self.peers.remove(&connection.index()).is_some();
        if was_current {
            let removed = self.current.remove(&peer).map(|current| current.connection);
            assert_eq!(removed, Some(connection), "{peer}");
        }
        self.check();
        Some(RemovedConnection { peer, was_current })
    }

    /// Returns the peer of a current connection; `None` for other connections.
    pub(super) fn peer_of(&self, connection: Connection) -> Option<Peer> {
        self.peers.get(&connection.index()).copied()
    }

    /// Returns the current connection of a peer; `None` without one.
    pub(super) fn of(&self, peer: Peer) -> Option<Connection> {
        self.current.get(&peer).map(|current| current.connection)
    }

    /// Returns the version of the messages on a peer's current connection; 0 without one.
    pub(super) fn version_of(&self, peer: Peer) -> u16 {
        self.current.get(&peer).map_or(0, |current| current.version)
    }

    /// Returns the number of current connections with a version below `version`.
    pub(super) fn count_below(&self, version: u16) -> usize {
        self.current.values().filter(|current| current.version < version).count()
    }

    /// Returns all current connections with their peers, in no particular order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Peer, Connection)> {
        self.current.iter().map(|(&peer, current)| (peer, current.connection))
    }

    pub(super) fn len(&self) -> usize {
        self.current.len()
    }

    fn check(&self) {
        assert_eq!(self.peers.len(), self.current.len(), "two maps of the same connections");
        assert!(self.open.len() >= self.current.len(), "a current connection has a descriptor");
    }
}
