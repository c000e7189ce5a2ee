//! Image data sets for convgp: generators, readers and the small tools around them.

pub mod generate;
