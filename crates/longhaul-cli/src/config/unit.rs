//! Times and sizes with their units.

use std::num::{IntErrorKind, ParseIntError};
use std::time::Duration;

use toml::de::DeInteger;

/// The longest time. A longer one is a mistake, and would not fit the arithmetic of deadlines.
const CONFIG_TIME_MAX: Duration = Duration::from_secs(365_000 * 24 * 60 * 60);

/// The largest size: whole GiB in the integers of TOML.
const CONFIG_SIZE_BYTES_MAX: u64 = 8_589_934_591 << 30;

/// Why a text is not a time, or not a size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnitError {
    /// It has another form, or is 0.
    Form,
    TooLong,
    TooLarge,
    /// A number without a unit that is too large.
    TooMany,
}

impl UnitError {
    /// What is wrong with the value, and what to do about it. `None` for one of another form.
    pub(super) fn describe(self) -> Option<(&'static str, String)> {
        match self {
            Self::Form => None,
            Self::TooLong => {
                Some(("which is too long", format!("use at most {}d", CONFIG_TIME_MAX.as_secs() / 86_400)))
            }
            Self::TooLarge => Some(("which is too large", format!("use at most {}GiB", CONFIG_SIZE_BYTES_MAX >> 30))),
            Self::TooMany => Some(("which is too large", format!("use at most {}", i64::MAX))),
        }
    }
}

/// Reads an integer of any radix.
pub(super) fn integer(number: &DeInteger<'_>) -> Result<i64, ParseIntError> {
    i64::from_str_radix(&number.as_str().replace('_', ""), number.radix())
}

/// Reads a whole number from 1 on.
pub(super) fn count(number: &DeInteger<'_>) -> Result<u64, UnitError> {
    match integer(number) {
        Ok(count) if count >= 1 => Ok(count.cast_unsigned()),
        Err(error) if *error.kind() == IntErrorKind::PosOverflow => Err(UnitError::TooMany),
        _ => Err(UnitError::Form),
    }
}

/// Reads a time, such as `30s`, `1h30m` or `250ms`.
pub(crate) fn duration(text: &str) -> Result<Duration, UnitError> {
    let mut rest = text.trim();
    let mut total = Duration::ZERO;
    while !rest.is_empty() {
        let (number, after) = number(rest).ok_or(UnitError::Form)?;
        let end = after.find(|next: char| next.is_ascii_digit()).unwrap_or(after.len());
        let ms: u64 = match after[..end].trim() {
            "ms" => 1,
            "s" => 1_000,
            "m" | "min" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(UnitError::Form),
        };
        total = total.saturating_add(Duration::from_millis(number.saturating_mul(ms)));
        rest = &after[end..];
    }
    match total {
        Duration::ZERO => Err(UnitError::Form),
        _ if total > CONFIG_TIME_MAX => Err(UnitError::TooLong),
        _ => Ok(total),
    }
}

/// `4MiB`, `512 KiB`, `100`.
pub(super) fn bytes(text: &str) -> Result<u64, UnitError> {
    let (number, unit) = number(text.trim()).ok_or(UnitError::Form)?;
    let size: u64 = match unit.trim() {
        "" | "B" => 1,
        "KiB" | "K" => 1 << 10,
        "MiB" | "M" => 1 << 20,
        "GiB" | "G" => 1 << 30,
        _ => return Err(UnitError::Form),
    };
    match number.saturating_mul(size) {
        0 => Err(UnitError::Form),
        bytes if bytes > CONFIG_SIZE_BYTES_MAX => Err(UnitError::TooLarge),
        bytes => Ok(bytes),
    }
}

/// The digits that a text begins with, and the rest. A number that does not fit is the greatest that does.
fn number(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|next: char| !next.is_ascii_digit()).unwrap_or(text.len());
    (end > 0).then(|| (text[..end].parse().unwrap_or(u64::MAX), &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(duration("45s"), Ok(Duration::from_secs(45)));
        assert_eq!(duration("1h30m"), Ok(Duration::from_secs(5_400)));
        assert_eq!(duration("2 d"), Ok(Duration::from_secs(172_800)));
        assert_eq!(duration("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(duration("365000d"), Ok(CONFIG_TIME_MAX));
        for wrong in ["", "5", "s", "1.5h", "-1s", "0s", "5 years", "1h30"] {
            assert_eq!(duration(wrong), Err(UnitError::Form), "{wrong}");
        }
        for long in ["365000d1ms", "99999999999999999999s", "18446744073709551s", "1h18446744073709551615d"] {
            assert_eq!(duration(long), Err(UnitError::TooLong), "{long}");
        }
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!((bytes("100"), bytes("4MiB"), bytes("1 KiB")), (Ok(100), Ok(4 << 20), Ok(1_024)));
        for wrong in ["", "MiB", "0", "0MiB", "-1", "4 MB"] {
            assert_eq!(bytes(wrong), Err(UnitError::Form), "{wrong}");
        }
        for large in ["18446744073709551615GiB", "9223372036854775808", "8589934592GiB"] {
            assert_eq!(bytes(large), Err(UnitError::TooLarge), "{large}");
        }
    }
}
