//! Tests of the admission table over random arrivals.

use std::collections::BTreeMap;

use super::*;

const SMALL: Limits = Limits { total: 20, strangers: 6, each_origin: 3, each_member: 5, reserved: 2 };

fn origin(number: u8) -> Origin {
    Origin::from(IpAddr::from([10, 0, 0, number]))
}

fn member(number: u8) -> Party<u8> {
    Party::Member(number)
}

fn stranger(number: u8) -> Party<u8> {
    Party::Stranger(origin(number))
}

/// Numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// A test's own model of the table: each connection that should be open, with its party.
type Model = BTreeMap<ConnectionId, Party<u8>>;

fn of_member(model: &Model, wanted: u8) -> u32 {
    count(model.values().filter(|party| **party == member(wanted)).count())
}

fn of_origin(model: &Model, wanted: Origin) -> u32 {
    count(model.values().filter(|party| **party == Party::Stranger(wanted)).count())
}

fn strangers(model: &Model) -> u32 {
    count(model.values().filter(|party| matches!(party, Party::Stranger(_))).count())
}

/// One arrival, with all checks of it. The value of each connection is its own number among arrivals.
fn arrive(table: &mut Table<u8, u64>, model: &mut Model, party: Party<u8>, limits: Limits) {
    let number = table.next;
    let outcome = table.arrive(party, number);
    let members = count(table.members.len());
    match (&party, &outcome) {
        (Party::Member(own), Err(refusal)) => {
            let held = of_member(model, *own);
            assert!(held >= limits.reserved || !limits.fit(members + 1), "{own} holds {held}: {refusal}");
            assert_eq!(*refusal == Refusal::OfOne, held >= limits.each_member);
        }
        (Party::Stranger(_), Err(refusal)) => {
            assert_eq!(*refusal, Refusal::Full);
            assert!(limits.strangers == 0 || strangers(model) == 0, "a stranger makes room for a stranger");
        }
        (_, Ok(_)) => {}
    }
    let Ok((id, displaced)) = outcome else { return };
    if let Some(displaced) = displaced {
        let gone = model.remove(&ConnectionId(displaced)).expect("who makes room is here");
        match (&party, &gone) {
            (_, Party::Stranger(_)) => {}
            (Party::Member(own), Party::Member(other)) => {
                assert!(of_member(model, *own) < limits.reserved, "{own} is not below its reserve");
                assert!(of_member(model, *other) >= limits.reserved, "{other} keeps its reserve");
                assert_eq!(strangers(model), 0, "strangers go first");
            }
            (Party::Stranger(_), Party::Member(other)) => panic!("a stranger displaced member {other}"),
        }
    }
    model.insert(id, party);
}

#[test]
fn a_member_below_its_reserve_is_always_admitted() {
    for seed in 0..60 {
        let mut dice = Dice(seed);
        let members = 2 + dice.below(6);
        let limits = Limits { total: 20 + u32::try_from(dice.below(6)).unwrap(), ..SMALL };
        assert!(limits.fit(u32::try_from(members).unwrap()));
        let (mut table, mut model) = (Table::new(limits), Model::new());
        for _ in 0..400 {
            let number = |dice: &mut Dice, end| u8::try_from(dice.below(end)).unwrap();
            match dice.below(10) {
                0..=3 => {
                    let from = number(&mut dice, 40);
                    arrive(&mut table, &mut model, stranger(from), limits);
                }
                4..=6 => {
                    let who = number(&mut dice, members);
                    arrive(&mut table, &mut model, member(who), limits);
                }
                7 if !model.is_empty() => {
                    let at = usize::try_from(dice.below(u64::try_from(model.len()).unwrap())).unwrap();
                    let id = *model.keys().nth(at).unwrap();
                    assert!(table.leave(id).is_some() && table.leave(id).is_none());
                    model.remove(&id);
                }
                8 if !model.is_empty() => {
                    let at = usize::try_from(dice.below(u64::try_from(model.len()).unwrap())).unwrap();
                    let (id, who) = (*model.keys().nth(at).unwrap(), number(&mut dice, members));
                    let is_its_own = model[&id] == member(who);
                    match table.is_member(id, who) {
                        Ok(()) => drop(model.insert(id, member(who))),
                        Err(_) => {
                            assert!(!is_its_own && of_member(&model, who) >= limits.each_member);
                        }
                    }
                }
                _ => {
                    if let Some(id) = model.keys().next() {
                        table.speaks(*id);
                    }
                }
            }
            let here: Vec<_> = table.here.iter().map(|(id, (party, _))| (*id, *party)).collect();
            assert_eq!(here, model.clone().into_iter().collect::<Vec<_>>(), "seed {seed}");
            assert!(count(model.len()) <= limits.total && strangers(&model) <= limits.strangers);
            for who in 0..8 {
                assert!(of_member(&model, who) <= limits.each_member);
            }
            for from in 0..40 {
                assert!(of_origin(&model, origin(from)) <= limits.each_origin);
            }
        }
    }
}

/// An observed case: as many strangers as there were slots, from many addresses, and every guest refused.
#[test]
fn strangers_of_many_origins_fill_their_own_part_alone() {
    let mut table = Table::new(SMALL);
    for from in 0..200 {
        table.arrive(stranger(from), 0).unwrap();
    }
    assert_eq!((table.strangers(), table.here.len()), (6, 6));
    for who in 0..7 {
        for _ in 0..SMALL.reserved {
            table.arrive(member(who), 0).unwrap();
        }
    }
}

#[test]
fn the_origin_that_holds_most_makes_room_and_its_silent_ones_first() {
    let mut table = Table::new(SMALL);
    let (first, _) = table.arrive(stranger(1), "first").unwrap();
    for name in ["second", "third"] {
        table.arrive(stranger(1), name).unwrap();
    }
    table.speaks(first);
    for from in 2..=4 {
        table.arrive(stranger(from), "other").unwrap();
    }
    assert_eq!(table.arrive(stranger(5), "newcomer").unwrap().1, Some("second"));
    assert_eq!(table.arrive(stranger(6), "newcomer").unwrap().1, Some("third"));
    // Each origin has one now: the oldest of all is closed, although it has sent data.
    assert_eq!(table.arrive(stranger(7), "newcomer").unwrap().1, Some("first"));
}

#[test]
fn an_origin_at_its_limit_makes_room_for_itself() {
    let mut table = Table::new(SMALL);
    for name in ["first", "second", "third"] {
        assert_eq!(table.arrive(stranger(1), name).unwrap().1, None);
    }
    assert_eq!(table.arrive(stranger(1), "fourth").unwrap().1, Some("first"));
}

#[test]
fn an_identified_member_leaves_the_strangers() {
    let mut table = Table::new(SMALL);
    let mut known = Vec::new();
    for who in 0..4 {
        let (id, _) = table.arrive(stranger(1), ()).unwrap();
        table.is_member(id, who).unwrap();
        known.push(id);
    }
    assert_eq!(table.strangers(), 0);
    for from in 0..200 {
        table.arrive(stranger(from), ()).unwrap();
    }
    assert!(known.iter().all(|id| table.here.contains_key(id)));
    // One member gets no more than its limit, in either way.
    for _ in 1..SMALL.each_member {
        table.arrive(member(0), ()).unwrap();
    }
    assert_eq!(table.arrive(member(0), ()), Err(Refusal::OfOne));
    let (id, _) = table.arrive(stranger(1), ()).unwrap();
    assert_eq!(table.is_member(id, 0), Err(Refusal::OfOne));
    assert_eq!(table.is_member(known[0], 0), Ok(()), "it is that member already");
}

#[test]
fn an_origin_is_an_address_or_a_network_of_64_bits() {
    let of = |text: &str| Origin::from(text.parse::<IpAddr>().unwrap());
    assert_eq!(of("2001:db8:1:2::1"), of("2001:db8:1:2:ffff::9"));
    assert_ne!(of("2001:db8:1:2::1"), of("2001:db8:1:3::1"));
    assert_eq!(of("::ffff:10.0.0.7"), of("10.0.0.7"));
    assert_ne!(of("10.0.0.7"), of("10.0.0.8"));
    assert_eq!(of("2001:db8:1:2::1").to_string(), "2001:db8:1:2::/64");
}

#[test]
fn a_dropped_slot_is_free() {
    let limits = Limits { each_member: 1, ..SMALL };
    let slots = Slots::new(limits);
    let arrived = slots.arrive(member(1), ()).unwrap();
    assert!(slots.arrive(member(1), ()).is_err());
    drop(arrived);
    assert!(slots.arrive(member(1), ()).is_ok());
}

#[test]
fn reserves_fit_with_the_strangers_or_do_not() {
    assert!(SMALL.fit(7) && !SMALL.fit(8), "seven reserves of two and six strangers are twenty");
}

#[test]
fn other_limits_hold_for_those_who_come_after() {
    let mut table: Table<u8, u64> = Table::new(SMALL);
    table.arrive(member(1), 0).unwrap();
    table.set_limits(Limits { each_member: 1, ..SMALL });
    assert_eq!(table.arrive(member(1), 1).unwrap_err(), Refusal::OfOne);
}

#[test]
fn members_within_their_reserve_make_no_room() {
    let limits = Limits { total: 4, strangers: 1, each_origin: 1, each_member: 4, reserved: 2 };
    let mut table: Table<u8, u64> = Table::new(limits);
    for (value, number) in (0..).zip([1, 1, 2, 2]) {
        assert_eq!(table.arrive(member(number), value).unwrap().1, None);
    }
    assert_eq!(table.arrive(member(3), 4).unwrap_err(), Refusal::Full);
}

#[test]
fn slots_do_what_their_table_does() {
    let slots: Slots<u8, u64> = Slots::new(SMALL);
    let _five: Vec<_> = (0..5).map(|value| slots.arrive(member(1), value).unwrap()).collect();
    let newcomer = slots.arrive(stranger(1), 5).unwrap();
    assert_eq!(newcomer.slot.is_member(1), Err(Refusal::OfOne));
    slots.set_limits(Limits { each_member: 1, ..SMALL });
    let _one = slots.arrive(member(2), 6).unwrap();
    assert_eq!(slots.arrive(member(2), 7).unwrap_err(), Refusal::OfOne);
}

#[test]
fn the_silent_make_room_before_those_who_speak() {
    let slots: Slots<u8, u64> = Slots::new(Limits { strangers: 2, each_origin: 2, ..SMALL });
    let first = slots.arrive(stranger(1), 1).unwrap();
    let _second = slots.arrive(stranger(1), 2).unwrap();
    first.slot.speaks();
    assert_eq!(slots.arrive(stranger(2), 3).unwrap().displaced, Some(2));
}
