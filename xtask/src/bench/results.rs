//! The samples of a run, and the statistics derived from them.

use super::client::Sample;
use super::figure::{CALLS, Figure, calls_per_second, geometric_mean, median, spread};
use super::server::{Kind, Program};
use super::workload::{Connections, System, Workload};

pub(super) struct Results {
    programs: Vec<Program>,
    cells: Vec<Cell>,
}

/// One workload with one number of callers that are connected in one way.
pub(super) struct Cell {
    pub(super) workload: &'static Workload,
    pub(super) connections: Connections,
    pub(super) callers: u32,
    /// By program, then by round. Not every program has every workload.
    samples: Vec<Vec<Sample>>,
}

impl Results {
    pub(super) fn new(system: System, programs: &[Program], workloads: &[&'static Workload], callers: &[u32]) -> Self {
        let mut cells = Vec::new();
        for workload in workloads.iter().filter(|workload| workload.is_measured_on(system)) {
            for connections in workload.connections() {
                cells.extend(callers.iter().map(|callers| Cell {
                    workload,
                    connections: *connections,
                    callers: *callers,
                    samples: vec![Vec::new(); programs.len()],
                }));
            }
        }
        Self { programs: programs.to_vec(), cells }
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
        self.cells.iter().flat_map(|cell| &cell.samples).filter(|samples| !samples.is_empty()).map(of).collect()
    }

    /// The programs of a kind, by index.
    pub(super) fn of_kind(&self, kind: Kind) -> impl Iterator<Item = usize> {
        let programs = self.programs.iter().enumerate();
        programs.filter(move |(_, program)| program.kind == kind).map(|(index, _)| index)
    }

    /// The numbers of callers, the smallest first.
    pub(super) fn callers(&self) -> Vec<u32> {
        let mut callers: Vec<u32> = self.cells.iter().map(|cell| cell.callers).collect();
        callers.sort_unstable();
        callers.dedup();
        callers
    }

    /// The median time in seconds from the start of a program to its first answer, if it was measured.
    pub(super) fn first_answer(&self, program: &str) -> Option<f64> {
        let index = self.programs.iter().position(|one| one.name == program)?;
        let samples = self.cells.iter().flat_map(|cell| &cell.samples[index]);
        Some(median(samples.map(|sample| sample.first_answer.as_secs_f64()))).filter(|seconds| seconds.is_finite())
    }

    /// How PathExists of what exists and what is missing compares between two programs, on one connection.
    pub(super) fn path_lookups(&self, callers: u32, figure: &Figure, of: usize, to: usize) -> Ratios {
        Ratios(self.lookups(callers).map(|cell| cell.median(figure, of) / cell.median(figure, to)).collect())
    }

    /// The median calls/s of the slowest of these lookups.
    pub(super) fn slowest_lookup(&self, callers: u32, program: usize) -> Option<f64> {
        let lookups = self.lookups(callers).filter(|cell| cell.is_measured(program));
        lookups.map(|cell| cell.median(&CALLS, program)).min_by(f64::total_cmp)
    }

    /// The cells with PathExists of what exists and what is missing, on one connection.
    fn lookups(&self, callers: u32) -> impl Iterator<Item = &Cell> {
        self.cells.iter().filter(move |cell| {
            cell.callers == callers && cell.connections == Connections::Shared && cell.workload.is_path_lookup()
        })
    }

    /// The median calls/s of a workload on one connection.
    pub(super) fn calls_per_second(&self, workload: &str, callers: u32, program: usize) -> Option<f64> {
        let cell = self.cells.iter().find(|cell| {
            cell.callers == callers && cell.connections == Connections::Shared && cell.workload.name == workload
        })?;
        cell.is_measured(program).then(|| cell.median(&CALLS, program))
    }
}

/// The ratio between two programs, for several workloads.
pub(super) struct Ratios(Vec<f64>);

impl Ratios {
    pub(super) fn mean(&self) -> f64 {
        geometric_mean(&self.0)
    }

    pub(super) fn least(&self) -> f64 {
        self.0.iter().copied().fold(f64::INFINITY, f64::min)
    }

    pub(super) fn most(&self) -> f64 {
        self.0.iter().copied().fold(f64::NEG_INFINITY, f64::max)
    }
}

impl Cell {
    /// The median over the rounds.
    pub(super) fn median(&self, figure: &Figure, program: usize) -> f64 {
        median(self.samples[program].iter().map(figure.of))
    }

    pub(super) fn is_measured(&self, program: usize) -> bool {
        !self.samples[program].is_empty()
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::time::Duration;

    use super::super::client::{Report, Sample};
    use super::super::counters::Usage;
    use super::super::figure::{CALLS, CPU};
    use super::super::server::{Kind, Program};
    use super::super::workload::{System, WORKLOADS};
    use super::Results;

    fn sample(calls: f64, others: f64) -> Sample {
        let report = Report {
            calls,
            seconds: 2.0,
            p50_us: 100.0,
            p99_us: 900.0,
            response_bytes: 2,
            grpc: "1.85.0".into(),
            ..Report::default()
        };
        Sample {
            report,
            first_answer: Duration::from_millis(20),
            server: Usage { cpu: Duration::from_secs(1), switches: calls / 2.0 },
            threads: 4,
            resident_mb: 12.5,
            peak_mb: 13.0,
            others,
            capacity: 4.0,
            ..Sample::default()
        }
    }

    /// `missing-1`, `missing-5` and `refused` with 1 and 8 callers, three rounds of a daemon that is half as fast as the
    /// server that it is compared with, and as fast in `missing-5`.
    pub(in super::super) fn results(system: System) -> Results {
        let other = if system == System::Wine { ("Go program", Kind::GoProgram) } else { ("grpc-go", Kind::Minimal) };
        let programs = [("csi-proxy", Kind::Ours), other].map(|(name, kind)| Program::new(name, kind, name.into()));
        let workloads = [&WORKLOADS[0], &WORKLOADS[1], &WORKLOADS[5]];
        let mut results = Results::new(system, &programs, &workloads, &[1, 8]);
        for (calls, others) in [(1000.0, 0.0), (1200.0, 0.4), (900.0, -0.1)] {
            for cell in 0..results.cells().len() {
                let slow = if results.cells()[cell].workload.name == "missing-5" { 1.0 } else { 0.5 };
                results.add(cell, 0, sample(calls * slow * 2.0, others)).expect("the first program");
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
        let results = results(System::Linux);
        let cell = &results.cells()[1];
        assert!(close(cell.median(&CALLS, 0), 500.0) && close(cell.median(&CALLS, 1), 1000.0));
        let calls = results.path_lookups(8, &CALLS, 0, 1);
        assert!(close(calls.least(), 0.5) && close(calls.most(), 1.0) && close(calls.mean(), 0.5_f64.sqrt()));
        let cpu = results.path_lookups(1, &CPU, 0, 1);
        assert!(close(cpu.most(), 2.0), "the same CPU time for half of the calls");
        assert_eq!(results.calls_per_second("refused", 8, 0), Some(500.0));
        assert_eq!(results.calls_per_second("existing-1", 8, 0), None);
    }

    #[test]
    fn the_first_workload_has_each_use_of_connections() {
        let results = results(System::Linux);
        let connections: Vec<_> = results.cells().iter().map(|cell| cell.connections.name()).collect();
        let [shared, each, per_call] = ["shared", "each", "per-call"].map(|name| [name; 2]);
        assert_eq!(connections, [shared, each, per_call, shared, shared].concat());
    }

    #[test]
    fn noise_is_reported_by_round_and_is_never_negative() {
        let noise = results(System::Linux).noise();
        assert_eq!(noise.len(), 3);
        assert!(close(noise[0], 0.0) && close(noise[1], 0.1) && close(noise[2], 0.0));
    }

    #[test]
    fn the_spread_is_that_of_calls_per_second() {
        let spreads = results(System::Linux).spreads();
        assert_eq!(spreads.len(), 20);
        assert!(spreads.iter().all(|spread| close(*spread, 0.3)));
    }

    #[test]
    fn servers_that_send_different_responses_are_not_compared() {
        let mut results = results(System::Linux);
        let mut other = sample(1000.0, 0.0);
        other.report.response_bytes = 3;
        assert!(results.add(0, 1, other).expect_err("another response").contains("grpc-go"));
    }
}
