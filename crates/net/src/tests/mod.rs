//! Clusters over real sockets of this host, with threads for processes.

mod broken;
mod forming;
mod parsing;
mod relay;
mod running;
mod sealed;
mod strangers;
mod support;
mod tls;
