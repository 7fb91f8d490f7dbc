//! The arguments of `serve`.
//!
//! Invariant: what can't be meant together is refused here or by the server before it listens.

use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;

use clap::Args;

use crate::args::{Io, Kv, positive, threads};
use crate::size;

#[derive(Args, Debug)]
pub(crate) struct ServeArgs {
    /// GGUF files that clients may ask for, each as PATH or NAME=PATH, or `demo`; the first is the default. Without any it is `demo`, the
    /// small model that comes with the program
    #[arg(value_name = "MODEL")]
    pub(crate) models: Vec<String>,
    /// Address to listen on; others than those of this machine alone need a key
    #[arg(long, value_name = "IP", default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST))]
    pub(crate) host: IpAddr,
    /// Port to listen on; 0: one that is free
    #[arg(short, long, default_value_t = 8080)]
    pub(crate) port: u16,
    /// Key that requests must show; may be repeated. Other users of this machine can see it: --api-key-file hides it
    #[arg(long, value_name = "KEY")]
    pub(crate) api_key: Vec<String>,
    /// File with keys, one a line
    #[arg(long, value_name = "FILE")]
    pub(crate) api_key_file: Option<PathBuf>,
    /// Listen on any address without a key, and answer to any name
    #[arg(long, conflicts_with_all = ["api_key", "api_key_file"])]
    pub(crate) no_key: bool,
    /// Let web pages of this origin use the server; `*`: all
    #[arg(long, value_name = "ORIGIN")]
    pub(crate) cors: Option<String>,
    /// Positions of a sequence; default: what the model was trained for, or as much of it as an eighth of the memory holds
    #[arg(short, long, value_name = "N", value_parser = positive)]
    pub(crate) context: Option<usize>,
    /// Memory that the whole process may take, all models together; default: what is free
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub(crate) memory: Option<u64>,
    /// Of it, memory for the KV caches of more requests than one; default: what the plan leaves over
    #[arg(long, value_name = "SIZE", value_parser = size::parse)]
    pub(crate) kv_memory: Option<u64>,
    /// Number format of the KV cache
    #[arg(long, value_enum, default_value_t = Kv::F16)]
    pub(crate) kv: Kv,
    /// Threads that compute; default: the physical cores this process may use
    #[arg(short, long, value_name = "N", value_parser = threads)]
    pub(crate) threads: Option<usize>,
    /// How what doesn't fit is read
    #[arg(long, value_enum, default_value_t = Io::Auto)]
    pub(crate) io: Io,
    /// Don't read the next layer's likely experts while the disk is idle
    #[arg(long)]
    pub(crate) no_look_ahead: bool,
    /// Requests that run at once
    #[arg(long, value_name = "N", value_parser = positive, default_value = "32")]
    pub(crate) max_running: usize,
    /// Requests that wait; more are refused with status 429
    #[arg(long, value_name = "N", value_parser = positive, default_value = "256")]
    pub(crate) max_queued: usize,
    /// Bytes of a request's body
    #[arg(long, value_name = "SIZE", value_parser = size::parse, default_value = "32MiB")]
    pub(crate) max_body: u64,
    /// Connections at a time; more wait
    #[arg(long, value_name = "N", value_parser = positive, default_value = "1024")]
    pub(crate) max_connections: usize,
    /// Close connections that are silent, or whose peer reads nothing, after this long
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86400), default_value = "75")]
    pub(crate) idle_timeout: u64,
    /// Unload a model after this long without a request; default: never
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=31_536_000))]
    pub(crate) idle_unload: Option<u64>,
    /// Time that running requests have to end after Ctrl-C or SIGTERM
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(0..=86400), default_value = "20")]
    pub(crate) grace: u64,
    /// Load the first model when it is asked for, not at the start
    #[arg(long)]
    pub(crate) lazy: bool,
    /// Write warnings alone
    #[arg(short, long)]
    pub(crate) quiet: bool,
}
