//! Tests of noisy neighbours.

use UsageMetric::{
    Cpu, CpuPressure, DiskRead, DiskWrite, IoPressure, MemoryPressure, MemoryTotal, MemoryUsed, NetIn, NetOut,
};

use super::*;

fn uid(n: u128) -> GuestUid {
    GuestUid::new(uuid::Uuid::from_u128(n))
}

fn at(minute: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + minute * 60).unwrap()
}

/// A host of eight CPUs whose guests have four each.
fn scale() -> CpuScale {
    CpuScale { host: Some(800), guests: (1..=4).map(|n| (uid(n), 400)).collect() }
}

type Figures<'a> = &'a [(UsageMetric, u64)];

fn sample(minute: i64, host: Figures<'_>, guests: &[(u128, Figures<'_>)]) -> UsageSample {
    let readings = |figures: Figures<'_>| figures.iter().copied().collect::<Readings>();
    let guests = guests.iter().map(|(n, figures)| (uid(*n), readings(figures))).collect();
    UsageSample { at: at(minute), host: readings(host), guests }
}

fn found(window: &NeighbourWindow) -> Vec<(u128, SharedResource)> {
    window.known().noisy().map(|(uid, resource, _)| (uid.uuid().as_u128(), resource)).collect()
}

/// Minutes of one kind, from this one on; the next one.
fn note(
    window: &mut NeighbourWindow,
    from: i64,
    minutes: i64,
    host: Figures<'_>,
    guests: &[(u128, Figures<'_>)],
) -> i64 {
    for minute in from..from + minutes {
        window.note(&sample(minute, host, guests), &scale());
    }
    from + minutes
}

#[test]
fn most_of_a_busy_host_s_cpu_time_for_a_whole_window() {
    let mut window = NeighbourWindow::default();
    // 100 % of four CPUs is half of the host: 500 of 900 thousandths in use.
    let guests: &[(u128, Figures<'_>)] = &[(1, &[(Cpu, 1000)]), (2, &[(Cpu, 100)])];
    let next = note(&mut window, 0, 4, &[(Cpu, 900)], guests);
    assert_eq!(found(&window), []);
    assert!(!window.known().has_judged(uid(1)));
    let next = note(&mut window, next, 1, &[(Cpu, 900)], guests);
    assert_eq!(found(&window), [(1, SharedResource::Cpu)]);
    let (_, _, noisy) = window.known().noisy().next().unwrap();
    assert_eq!(
        (
            noisy.since,
            noisy.share_permille,
            noisy.amount,
            noisy.host_cpu_permille,
            noisy.pressure_permille,
            noisy.others
        ),
        (at(0), 555, 500, Some(900), None, 1)
    );
    // Less, and not low enough: it stays, with its beginning and its figures.
    let next = note(&mut window, next, 5, &[(Cpu, 800)], guests);
    assert_eq!(window.known().noisy().next().unwrap().2.since, at(0));
    // Below the lower value it is over.
    note(&mut window, next, 5, &[(Cpu, 700)], guests);
    assert_eq!(found(&window), []);
}

#[test]
fn a_host_that_is_not_short_and_a_guest_alone_are_no_neighbours() {
    let cases: [(Figures<'_>, &[(u128, Figures<'_>)]); 6] = [
        (&[(Cpu, 840)], &[(1, &[(Cpu, 1000)]), (2, &[(Cpu, 10)])]),
        (&[(Cpu, 990)], &[(1, &[(Cpu, 1000)])]),
        (&[(Cpu, 990)], &[(1, &[(Cpu, 900)]), (2, &[(Cpu, 900)])]),
        (&[], &[(1, &[(Cpu, 1000)]), (2, &[(Cpu, 10)])]),
        // A kernel without pressure says nothing of disks and memory.
        (
            &[(MemoryTotal, 100)],
            &[(1, &[(MemoryUsed, 99), (DiskRead, 900 * MIB), (DiskWrite, 0)]), (2, &[(MemoryUsed, 1)])],
        ),
        (
            &[(IoPressure, 900)],
            &[(1, &[(DiskRead, 100), (DiskWrite, 100)]), (2, &[(DiskRead, 0), (DiskWrite, 0)])],
        ),
    ];
    for (host, guests) in cases {
        let mut window = NeighbourWindow::default();
        note(&mut window, 0, 6, host, guests);
        assert_eq!(found(&window), [], "{host:?} {guests:?}");
    }
}

#[test]
fn pressure_alone_is_a_shortage() {
    let host: Figures<'_> =
        &[(Cpu, 600), (CpuPressure, 300), (MemoryPressure, 150), (MemoryTotal, 1000), (IoPressure, 400)];
    let loud: Figures<'_> = &[
        (Cpu, 800),
        (MemoryUsed, 600),
        (DiskRead, 3 * MIB),
        (DiskWrite, MIB),
        (NetIn, 90 * MIB),
        (NetOut, 20 * MIB),
    ];
    let quiet: Figures<'_> =
        &[(Cpu, 10), (MemoryUsed, 100), (DiskRead, MIB), (DiskWrite, 0), (NetIn, MIB), (NetOut, MIB)];
    let mut window = NeighbourWindow::default();
    note(&mut window, 0, 5, host, &[(1, quiet), (2, loud), (3, quiet)]);
    assert_eq!(found(&window), SharedResource::ALL.map(|resource| (2, resource)));
    let disk = window.known().noisy().find(|(_, resource, _)| *resource == SharedResource::Disk).unwrap().2;
    assert_eq!((disk.share_permille, disk.amount, disk.pressure_permille), (666, 4 * MIB, Some(400)));
}

#[test]
fn a_guest_that_stops_is_forgotten_and_judged_anew() {
    let mut window = NeighbourWindow::default();
    let (loud, quiet): (Figures<'_>, Figures<'_>) = (&[(Cpu, 1000)], &[(Cpu, 100)]);
    let next = note(&mut window, 0, 5, &[(Cpu, 900)], &[(1, loud), (2, quiet)]);
    assert_eq!(found(&window).len(), 1);
    let next = note(&mut window, next, 1, &[(Cpu, 900)], &[(2, quiet)]);
    assert_eq!(found(&window), []);
    assert!(window.known().has_judged(uid(2)) && !window.known().has_judged(uid(1)));
    let next = note(&mut window, next, 4, &[(Cpu, 900)], &[(1, loud), (2, quiet)]);
    assert!(!window.known().has_judged(uid(1)), "its window is not whole yet");
    note(&mut window, next, 1, &[(Cpu, 900)], &[(1, loud), (2, quiet)]);
    assert_eq!(window.known().noisy().next().unwrap().2.since, at(6));
}

#[test]
fn samples_far_apart_are_no_window() {
    let mut window = NeighbourWindow::default();
    let guests: &[(u128, Figures<'_>)] = &[(1, &[(Cpu, 1000)]), (2, &[(Cpu, 100)])];
    note(&mut window, 0, 4, &[(Cpu, 900)], guests);
    note(&mut window, 100, 1, &[(Cpu, 900)], guests);
    assert_eq!(found(&window), []);
    note(&mut window, 101, 4, &[(Cpu, 900)], guests);
    assert_eq!(found(&window), [(1, SharedResource::Cpu)]);
    // A clock that was set back begins anew, and takes nothing away.
    note(&mut window, 50, 1, &[(Cpu, 900)], guests);
    assert_eq!(found(&window), [(1, SharedResource::Cpu)]);
    assert!(!window.known().has_judged(uid(1)));
}

#[test]
fn figures_move_with_the_share_and_not_with_each_sample() {
    let mut window = NeighbourWindow::default();
    let minute = |own: u64, window: &mut NeighbourWindow, from| {
        let own = [(Cpu, own)];
        note(window, from, 5, &[(Cpu, 900)], &[(1, &own), (2, &[(Cpu, 100)])])
    };
    let next = minute(1000, &mut window, 0);
    let before = window.known().clone();
    let next = minute(980, &mut window, next);
    assert_eq!(*window.known(), before);
    let half = CpuScale { host: Some(800), guests: BTreeMap::from([(uid(1), 600), (uid(2), 400)]) };
    for minute in next..next + 5 {
        let own: Figures<'_> = &[(Cpu, 1000)];
        window.note(&sample(minute, &[(Cpu, 900)], &[(1, own), (2, own)]), &half);
    }
    let noisy = window.known().noisy().next().unwrap().2.clone();
    assert_eq!((noisy.since, noisy.share_permille), (at(0), 775));
}
