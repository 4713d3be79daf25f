//! Tests of what is computed from tables, which are read from text.

mod codebooks;
mod made_hierarchies;
mod profiles;
mod risk;
mod schemas;
