//! Random keys, values, operands and lives.

use crate::model::{FAILING, Life, Operator, PANICKING};
use crate::random::Random;

/// A value to put where that operator merges.
pub fn value(random: &mut Random, operator: Operator) -> Vec<u8> {
    let counts = matches!(operator, Operator::UInt64Add | Operator::Int64Add);
    // A counter that is not 8 bytes makes later reads of merges fail, so it must stay rare.
    if counts && !random.percent(1) {
        return counter(random);
    }
    let length = match random.below(200) {
        0..=9 => 0,
        10..=149 => random.between(1, 20),
        150..=189 => random.between(21, 300),
        190..=197 => random.between(301, 3_000),
        198 => random.between(3_000, 12_000),
        // One in two hundred would be most of all bytes written.
        _ if random.percent(90) => 40,
        _ => random.between(12_000, 70_000),
    };
    // Half of the values compress.
    if random.percent(50) { vec![b'a' + random.below(26) as u8; length] } else { random.bytes(length) }
}

/// A value that is a large one by some option sets, seldom by all, where that operator merges.
pub fn large_value(random: &mut Random, operator: Operator) -> Vec<u8> {
    if matches!(operator, Operator::UInt64Add | Operator::Int64Add) {
        return counter(random);
    }
    let length = if random.percent(20) { random.between(33_000, 70_000) } else { random.between(100, 400) };
    random.bytes(length)
}

/// An operand for that operator, seldom a wrong one.
pub fn operand(random: &mut Random, operator: Operator) -> Vec<u8> {
    match operator {
        Operator::UInt64Add | Operator::Int64Add if random.below(200) == 0 => return vec![1, 2, 3],
        Operator::UInt64Add | Operator::Int64Add => return counter(random),
        Operator::Fragile if random.percent(2) => return vec![FAILING, random.next() as u8],
        Operator::Fragile if random.percent(2) => return vec![PANICKING],
        _ => {}
    }
    let length = random.below(12);
    let mut bytes = random.bytes(length);
    // Only those meant to fail may do so.
    if operator == Operator::Fragile && matches!(bytes.first(), Some(&FAILING | &PANICKING)) {
        bytes[0] = b'.';
    }
    bytes
}

/// Small and large numbers, and those at both ends, with and without sign.
fn counter(random: &mut Random) -> Vec<u8> {
    let number = match random.below(6) {
        0 => 1,
        1 => random.next(),
        2 => u64::MAX,
        3 => i64::MAX as u64 - random.below(3) as u64,
        4 => i64::MIN as u64 + random.below(3) as u64,
        _ => random.below(1000) as u64,
    };
    number.to_le_bytes().to_vec()
}

/// A life where entries expire, seldom a wrong one.
pub fn life(random: &mut Random, for_put: bool) -> Life {
    match random.below(200) {
        0 => Life::For(0),
        1..=2 => Life::For(u64::MAX),
        3..=79 => Life::For(random.between(1, 400) as u64),
        80..=84 if for_put => Life::Until(random.below(3) as u64),
        85..=89 if for_put => Life::Until(u64::MAX - random.below(2) as u64),
        90..=119 if for_put => Life::Around([-400, -1, 0, 1, 2, 50, 400][random.below(7)]),
        _ => Life::Usual,
    }
}

/// Keys that are close together, and odd ones.
pub fn key_pool(random: &mut Random) -> Vec<Vec<u8>> {
    let count = [8, 30, 150][random.below(3)];
    let mut keys: Vec<Vec<u8>> = vec![
        vec![],
        vec![0],
        vec![0, 0],
        vec![0xff],
        vec![0xff; 2],
        vec![0xff; 9],
        b"p".to_vec(),
        b"pr".to_vec(),
        b"pr\0".to_vec(),
        b"pre\xff".to_vec(),
        b"pre\xff\xff".to_vec(),
        b"prefix".to_vec(),
        vec![b'l'; 300],
        [&[b'l'; 300][..], b"m"].concat(),
        vec![b'l'; 5000],
    ];
    for number in 0..count {
        keys.push(match random.below(4) {
            0 => vec![b'a' + random.below(3) as u8; random.between(1, 4)],
            1 => format!("common-prefix-of-many-keys-{number:04}").into_bytes(),
            2 => (number as u64).to_be_bytes().to_vec(),
            _ => {
                let length = random.between(1, 10);
                random.bytes(length)
            }
        });
    }
    random.shuffle(&mut keys);
    keys
}
