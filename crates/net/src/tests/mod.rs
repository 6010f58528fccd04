//! Clusters over real sockets of this host, with threads for processes.

mod broken;
mod forming;
mod message_link;
mod parsing;
mod relay;
mod running;
mod strangers;
mod support;
mod tls;
