//! The service survives its clients and its surroundings. Each test is an attack.

mod erasure;
mod full_disk;
mod keys;
mod killed;
