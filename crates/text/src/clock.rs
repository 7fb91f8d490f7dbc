//! Dates for templates: `strftime_now`, in UTC, from a time that the caller may set.

use std::time::{SystemTime, UNIX_EPOCH};

const DAYS: [&str; 7] = ["Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"];
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// Seconds since 1970, now.
pub(crate) fn now() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| d.as_secs() as i64)
}

/// `strftime` of a time in seconds since 1970, UTC. A directive that is not implemented is an error with its name.
pub(crate) fn strftime(seconds: i64, format: &str) -> Result<String, String> {
    let (days, second) = (seconds.div_euclid(86_400), seconds.rem_euclid(86_400));
    let (year, month, day) = civil(days);
    let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
    let weekday = (days + 4).rem_euclid(7) as usize;
    let day_of_year = days - days_from_civil(year, 1, 1) + 1;
    let (month_name, day_name) = (MONTHS[month as usize - 1], DAYS[weekday]);
    let half_day = if hour % 12 == 0 { 12 } else { hour % 12 };
    let half = if hour < 12 { "AM" } else { "PM" };

    let mut out = String::new();
    let mut chars = format.chars();
    while let Some(c) = chars.next() {
        if c != '%' {
            out.push(c);
            continue;
        }
        let mut directive = chars.next().unwrap_or('%');
        let bare = directive == '-';
        if bare {
            directive = chars.next().unwrap_or('-');
        }
        let padded =
            |value: i64, width: usize| if bare { value.to_string() } else { format!("{value:0width$}") };
        out.push_str(&match directive {
            'Y' => padded(year, 4),
            'y' => padded(year.rem_euclid(100), 2),
            'm' => padded(month, 2),
            'd' => padded(day, 2),
            'e' => format!("{day:>2}"),
            'H' => padded(hour, 2),
            'I' => padded(half_day, 2),
            'M' => padded(minute, 2),
            'S' => padded(second, 2),
            'j' => padded(day_of_year, 3),
            'B' => month_name.to_owned(),
            'b' | 'h' => month_name[..3].to_owned(),
            'A' => day_name.to_owned(),
            'a' => day_name[..3].to_owned(),
            'p' => half.to_owned(),
            'w' => weekday.to_string(),
            'F' => format!("{year:04}-{month:02}-{day:02}"),
            'D' | 'x' => format!("{month:02}/{day:02}/{:02}", year.rem_euclid(100)),
            'T' | 'X' => format!("{hour:02}:{minute:02}:{second:02}"),
            'R' => format!("{hour:02}:{minute:02}"),
            'z' => "+0000".to_owned(),
            'Z' => "UTC".to_owned(),
            '%' => "%".to_owned(),
            other => return Err(format!("strftime_now: %{other} is not implemented")),
        });
    }
    Ok(out)
}

/// Year, month and day of a day number since 1970 (Howard Hinnant, "chrono-compatible low-level date algorithms").
fn civil(days: i64) -> (i64, i64, i64) {
    let z = days + 719_468;
    let era = z.div_euclid(146_097);
    let day_of_era = z.rem_euclid(146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    (year_of_era + era * 400 + i64::from(month <= 2), month, day_of_year - (153 * shifted + 2) / 5 + 1)
}

fn days_from_civil(year: i64, month: i64, day: i64) -> i64 {
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let shifted = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * shifted + 2) / 5 + day - 1;
    era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn known_dates_are_written_as_c_does() {
        assert_eq!(strftime(0, "%A %d %B %Y %j %p").unwrap(), "Thursday 01 January 1970 001 AM");
        assert_eq!(strftime(951_782_400, "%F %a").unwrap(), "2000-02-29 Tue");
        assert_eq!(strftime(1_722_000_000, "%d %b %Y, %H:%M:%S %-I%%").unwrap(), "26 Jul 2024, 13:20:00 1%");
        assert_eq!(strftime(-1, "%F %T").unwrap(), "1969-12-31 23:59:59");
    }

    #[test]
    fn unknown_directives_are_named() {
        assert!(strftime(0, "%Q").unwrap_err().contains("%Q"));
    }

    #[test]
    fn day_numbers_round_trip() {
        for days in (-800_000..800_000).step_by(97) {
            let (y, m, d) = civil(days);
            assert_eq!(days_from_civil(y, m, d), days);
        }
    }
}
