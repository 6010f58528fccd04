//! Clusters over real sockets of this host, with threads for processes.

mod forming;
mod running;
mod support;
