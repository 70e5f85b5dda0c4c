//! The figures made of a sample, and their medians, ratios and spreads.

use super::client::Sample;
use super::counters::Usage;

/// A column of the page.
pub(super) struct Figure {
    pub(super) name: &'static str,
    pub(super) decimals: usize,
    pub(super) of: fn(&Sample) -> f64,
}

pub(super) const CALLS: Figure = Figure { name: "calls/s", decimals: 0, of: calls_per_second };
pub(super) const P50: Figure = Figure { name: "p50 us", decimals: 0, of: |sample| sample.report.p50_us };
pub(super) const P99: Figure = Figure { name: "p99 us", decimals: 0, of: |sample| sample.report.p99_us };
pub(super) const CPU: Figure =
    Figure { name: "CPU us/call", decimals: 1, of: |sample| per_call(sample, sample.server) };
pub(super) const WINESERVER: Figure =
    Figure { name: "wineserver us/call", decimals: 1, of: |sample| per_call(sample, sample.wineserver) };
/// The server's and, under Wine, the wineserver's.
pub(super) const WHOLE_CPU: Figure = Figure {
    name: "whole CPU us/call",
    decimals: 1,
    of: |sample| per_call(sample, sample.server) + per_call(sample, sample.wineserver),
};
pub(super) const SWITCHES: Figure =
    Figure { name: "switches/call", decimals: 2, of: |sample| sample.server.switches / sample.report.calls };
pub(super) const THREADS: Figure = Figure { name: "threads", decimals: 0, of: |sample| f64::from(sample.threads) };
pub(super) const RESIDENT: Figure = Figure { name: "resident MB", decimals: 1, of: |sample| sample.resident_mb };
pub(super) const PEAK: Figure = Figure { name: "peak MB", decimals: 1, of: |sample| sample.peak_mb };

fn per_call(sample: &Sample, used: Usage) -> f64 {
    used.cpu.as_secs_f64() * 1e6 / sample.report.calls
}

pub(super) fn calls_per_second(sample: &Sample) -> f64 {
    sample.report.calls / sample.report.seconds
}

/// The median of a figure; of an even number of samples, the mean of the middle two.
pub(super) fn median(values: impl IntoIterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.into_iter().collect();
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    match values.len() {
        0 => f64::NAN,
        odd if odd % 2 == 1 => values[middle],
        _ => f64::midpoint(values[middle - 1], values[middle]),
    }
}

/// The difference between the largest and the smallest value, as a fraction of the median.
pub(super) fn spread(values: &[f64]) -> f64 {
    let (least, most) =
        values.iter().fold((f64::MAX, f64::MIN), |(least, most), value| (least.min(*value), most.max(*value)));
    (most - least) / median(values.iter().copied())
}

/// The geometric mean of ratios: a ratio and its reciprocal cancel out.
pub(super) fn geometric_mean(ratios: &[f64]) -> f64 {
    let Ok(count) = u32::try_from(ratios.len()) else { return f64::NAN };
    (ratios.iter().map(|ratio| ratio.ln()).sum::<f64>() / f64::from(count)).exp()
}

#[cfg(test)]
mod tests {
    use super::{geometric_mean, median, spread};

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn the_median_does_not_depend_on_the_order() {
        assert!(close(median([5.0, 1.0, 100.0]), 5.0));
        assert!(close(median([4.0, 1.0, 2.0, 100.0]), 3.0));
        assert!(close(median([7.0]), 7.0));
        assert!(median([]).is_nan());
    }

    #[test]
    fn the_spread_is_relative_to_the_median() {
        assert!(close(spread(&[90.0, 100.0, 120.0]), 0.3));
        assert!(close(spread(&[5.0]), 0.0));
    }

    #[test]
    fn a_ratio_and_its_reciprocal_cancel_out() {
        assert!(close(geometric_mean(&[0.5, 2.0]), 1.0));
        assert!(close(geometric_mean(&[3.0]), 3.0));
        assert!(geometric_mean(&[]).is_nan());
    }
}
