//! The service survives its clients and its surroundings. Each test is an attack.

mod full_disk;
