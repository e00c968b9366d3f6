//! Times and sizes with their units.

use std::time::Duration;

/// Reads a time, such as `30s`, `1h30m` or `250ms`. `None` if the text is not a time, or if the time is zero or longer
/// than a thousand years.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let mut rest = text.trim();
    let mut total = Duration::ZERO;
    if rest.is_empty() {
        return None;
    }
    while !rest.is_empty() {
        let (number, after) = number(rest)?;
        let end = after.find(|next: char| next.is_ascii_digit()).unwrap_or(after.len());
        let ms: u64 = match after[..end].trim() {
            "ms" => 1,
            "s" => 1_000,
            "m" | "min" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return None,
        };
        total = total.checked_add(Duration::from_millis(number.checked_mul(ms)?))?;
        rest = &after[end..];
    }
    // A time of more than a thousand years is a mistake, and computing a deadline with it could overflow.
    (!total.is_zero() && total < Duration::from_secs(1_000 * 366 * 86_400)).then_some(total)
}

/// Reads a size, such as `4MiB`, `512 KiB` or `100`. `None` if the text is not a size, or if the size is zero.
pub(super) fn bytes(text: &str) -> Option<u64> {
    let (number, unit) = number(text.trim())?;
    let size: u64 = match unit.trim() {
        "" | "B" => 1,
        "KiB" | "K" => 1 << 10,
        "MiB" | "M" => 1 << 20,
        "GiB" | "G" => 1 << 30,
        _ => return None,
    };
    number.checked_mul(size).filter(|bytes| (1..=i64::MAX.cast_unsigned()).contains(bytes))
}

fn number(text: &str) -> Option<(u64, &str)> {
    let end = text.find(|next: char| !next.is_ascii_digit()).unwrap_or(text.len());
    Some((text[..end].parse().ok()?, &text[end..]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_units() {
        assert_eq!(duration("45s"), Some(Duration::from_secs(45)));
        assert_eq!(duration("1h30m"), Some(Duration::from_secs(5_400)));
        assert_eq!(duration("2 d"), Some(Duration::from_secs(172_800)));
        assert_eq!(duration("250ms"), Some(Duration::from_millis(250)));
        for wrong in
            ["", "5", "s", "1.5h", "-1s", "0s", "5 years", "99999999999999999999s", "18446744073709551s", "1h30"]
        {
            assert_eq!(duration(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn sizes_have_units() {
        assert_eq!((bytes("100"), bytes("4MiB"), bytes("1 KiB")), (Some(100), Some(4 << 20), Some(1_024)));
        for wrong in ["", "MiB", "0", "-1", "4 MB", "18446744073709551615GiB"] {
            assert_eq!(bytes(wrong), None, "{wrong}");
        }
    }
}
