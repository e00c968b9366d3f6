//! The one source of randomness.

use std::fmt;

use rand::RngExt;

/// Where random bits come from: passed in, so that a history can be run again.
pub trait RandomSource: Send + Sync + fmt::Debug + 'static {
    /// 128 random bits.
    fn bits(&self) -> [u8; 16];
}

/// The thread's cryptographic generator, seeded by the operating system.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemRandom;

impl RandomSource for SystemRandom {
    fn bits(&self) -> [u8; 16] {
        rand::rng().random()
    }
}

/// 256 random bits.
pub fn secret(random: &dyn RandomSource) -> [u8; 32] {
    let mut secret = [0; 32];
    secret[..16].copy_from_slice(&random.bits());
    secret[16..].copy_from_slice(&random.bits());
    secret
}
