//! Numbers of a progress report.

/// How much of the work is done: any number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Amount(pub(crate) f64);

/// How much work there is: any number, or `None` where that is not known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Total(pub(crate) Option<f64>);

macro_rules! from_number {
    ($($number:ty),+) => {$(
        impl From<$number> for Amount {
            // Progress is shown to people, so the digits past 2^53 do not matter.
            #[allow(clippy::cast_lossless, clippy::cast_precision_loss)]
            fn from(number: $number) -> Self {
                Self(number as f64)
            }
        }

        impl From<$number> for Total {
            fn from(number: $number) -> Self {
                Self(Some(Amount::from(number).0))
            }
        }
    )+};
}

from_number!(u8, u16, u32, u64, usize, i8, i16, i32, i64, isize, f32, f64);

impl From<Option<f64>> for Total {
    fn from(total: Option<f64>) -> Self {
        Self(total)
    }
}
