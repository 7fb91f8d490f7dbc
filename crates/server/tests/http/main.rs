//! The server on a real socket, asked by a client that knows nothing of it but HTTP.

mod answers;
mod client;
mod ending;
mod limits;
mod models;
mod openai;
