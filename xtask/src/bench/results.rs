//! The samples of a run, and the statistics derived from them.

use super::client::Sample;
use super::figure::{Figure, calls_per_second, geometric_mean, median, spread};
use super::server::Program;
use super::workload::Workload;

pub(super) struct Results {
    programs: Vec<Program>,
    cells: Vec<Cell>,
}

/// One workload with one number of callers: a row of the page.
pub(super) struct Cell {
    pub(super) workload: &'static Workload,
    pub(super) callers: u32,
    /// By program, then by round.
    samples: Vec<Vec<Sample>>,
}

impl Results {
    pub(super) fn new(programs: &[Program], workloads: &[&'static Workload], callers: &[u32]) -> Self {
        let cells = workloads.iter().flat_map(|workload| {
            let samples = vec![Vec::new(); programs.len()];
            callers.iter().map(move |callers| Cell { workload, callers: *callers, samples: samples.clone() })
        });
        Self { programs: programs.to_vec(), cells: cells.collect() }
    }

    pub(super) fn programs(&self) -> &[Program] {
        &self.programs
    }

    pub(super) fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// Adds the sample of another round. Fails if the servers do not send the same.
    pub(super) fn add(&mut self, cell: usize, program: usize, sample: Sample) -> Result<(), String> {
        let cell = &mut self.cells[cell];
        let (name, bytes) = (&self.programs[program].name, sample.report.response_bytes);
        if let Some(other) = cell.samples.iter().flatten().find(|other| other.report.response_bytes != bytes) {
            let others = other.report.response_bytes;
            return Err(format!(
                "{name} answers {} with {bytes} bytes, another server with {others}: they cannot be compared",
                cell.workload.name
            ));
        }
        cell.samples[program].push(sample);
        Ok(())
    }

    /// All samples, in no order that means anything.
    pub(super) fn samples(&self) -> impl Iterator<Item = &Sample> {
        self.cells.iter().flat_map(|cell| &cell.samples).flatten()
    }

    pub(super) fn rounds(&self) -> usize {
        self.cells.iter().flat_map(|cell| &cell.samples).map(Vec::len).max().unwrap_or(0)
    }

    /// The part of the machine's CPU time that other processes took, by round.
    pub(super) fn noise(&self) -> Vec<f64> {
        let of_round = |round: usize| {
            let samples = || self.cells.iter().flat_map(|cell| &cell.samples).filter_map(move |of| of.get(round));
            let others: f64 = samples().map(|sample| sample.others).sum();
            let capacity: f64 = samples().map(|sample| sample.capacity).sum();
            f64::max(others / capacity, 0.0)
        };
        (0..self.rounds()).map(of_round).collect()
    }

    /// The spread of the rounds' calls/s, for each cell and program.
    pub(super) fn spreads(&self) -> Vec<f64> {
        let of = |samples: &Vec<Sample>| spread(&samples.iter().map(calls_per_second).collect::<Vec<_>>());
        self.cells.iter().flat_map(|cell| &cell.samples).map(of).collect()
    }

    /// The geometric mean over the workloads of the ratio between two programs, at one number of callers.
    pub(super) fn mean_ratio(&self, callers: u32, figure: &Figure, of: usize, to: usize) -> f64 {
        let cells = self.cells.iter().filter(|cell| cell.callers == callers);
        geometric_mean(&cells.map(|cell| cell.ratio(figure, of, to)).collect::<Vec<_>>())
    }
}

impl Cell {
    /// The median over the rounds.
    pub(super) fn median(&self, figure: &Figure, program: usize) -> f64 {
        median(self.samples[program].iter().map(figure.of))
    }

    /// The ratio between the medians of two programs.
    pub(super) fn ratio(&self, figure: &Figure, of: usize, to: usize) -> f64 {
        self.median(figure, of) / self.median(figure, to)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use super::super::client::{Report, Sample};
    use super::super::counters::Usage;
    use super::super::figure::FIGURES;
    use super::super::server::Program;
    use super::super::workload::WORKLOADS;
    use super::Results;

    fn sample(calls: f64, others: f64) -> Sample {
        let report =
            Report { calls, seconds: 2.0, p50_us: 100.0, p99_us: 900.0, response_bytes: 2, grpc: "1.85.0".into() };
        Sample {
            report,
            server: Usage { cpu: Duration::from_secs(1), switches: calls / 2.0 },
            threads: 4,
            resident_mib: 12.5,
            peak_mib: 13.0,
            others,
            capacity: 4.0,
        }
    }

    /// One workload with 1 and 8 callers, three rounds of a daemon that is half as fast as the server that it is
    /// compared with.
    pub(in super::super) fn results() -> Results {
        let programs =
            [Program::of_this_tree("csi-proxy".into()), Program::minimal("grpc-go", "target/bench/server".into())];
        let mut results = Results::new(&programs, &[&WORKLOADS[0]], &[1, 8]);
        for (calls, others) in [(1000.0, 0.0), (1200.0, 0.4), (900.0, -0.1)] {
            for cell in 0..2 {
                results.add(cell, 0, sample(calls, others)).expect("the first program");
                results.add(cell, 1, sample(calls * 2.0, others)).expect("the second program");
            }
        }
        results
    }

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-9
    }

    #[test]
    fn ratios_are_between_medians() {
        let results = results();
        let cell = &results.cells()[1];
        assert!(close(cell.median(&FIGURES[0], 0), 500.0));
        assert!(close(cell.median(&FIGURES[0], 1), 1000.0));
        assert!(close(cell.ratio(&FIGURES[0], 0, 1), 0.5));
        assert!(close(results.mean_ratio(8, &FIGURES[0], 0, 1), 0.5));
        assert!(close(cell.ratio(&FIGURES[3], 0, 1), 2.0), "the same CPU time for half of the calls");
    }

    #[test]
    fn noise_is_reported_by_round_and_is_never_negative() {
        let noise = results().noise();
        assert_eq!(noise.len(), 3);
        assert!(close(noise[0], 0.0) && close(noise[1], 0.1) && close(noise[2], 0.0));
    }

    #[test]
    fn the_spread_is_that_of_calls_per_second() {
        let spreads = results().spreads();
        assert_eq!(spreads.len(), 4);
        assert!(spreads.iter().all(|spread| close(*spread, 0.3)));
    }

    #[test]
    fn servers_that_send_different_responses_are_not_compared() {
        let mut results = results();
        let mut other = sample(1000.0, 0.0);
        other.report.response_bytes = 3;
        assert!(results.add(0, 1, other).expect_err("another response").contains("grpc-go"));
    }
}
