//! Decoding of LZ4 blocks. Every block that is not in the cache passes through here, and most of
//! the time of its reader is spent here.
//!
//! ```text
//! block    := sequence* last
//! sequence := token more* literal:u8* offset:u16 more*    the literals, then a match: bytes from `offset` back on, again
//! last     := token more* literal:u8*
//! token    := literals:4bit match:4bit                    how many; of a match four less; 15: `more` follows and is added
//! more     := u8                                          255: another follows and is added
//! ```
//!
//! Literals and matches are a few dozen bytes long as a rule. They are copied in pieces of a fixed
//! size, without a call or a loop over bytes, and overwrite what comes behind them: hence the
//! slack.

/// Bytes behind the end of the output that are written over.
pub const SLACK_BYTES: usize = LITERALS;

/// Up to so many literals are copied in pieces.
const LITERALS: usize = 64;

/// A match is copied in pieces of so many bytes, if it lies that far back.
const PIECE: usize = 16;

/// How much of a block is decoded.
#[derive(Clone, Copy, Debug, Default)]
pub struct Progress {
    /// Bytes of the block.
    from: usize,
    /// Bytes of the output.
    pub to: usize,
}

/// Decodes `packed` into the start of `output`, all but whose last [`SLACK_BYTES`] are for the
/// result; its length. `None` if `packed` is no LZ4 block, or one of more bytes.
pub fn decode(packed: &[u8], output: &mut [u8]) -> Option<usize> {
    let mut progress = Progress::default();
    decode_until(packed, output, &mut progress, usize::MAX)?;
    Some(progress.to)
}

/// As [`decode`], but continues at `progress` and stops once the output has `until` bytes, or all.
/// Input after that place is not read, and may be damaged. Returns `None` also if the output was
/// complete before.
#[inline(always)]
pub fn decode_until(packed: &[u8], output: &mut [u8], progress: &mut Progress, until: usize) -> Option<()> {
    let end = output.len().checked_sub(SLACK_BYTES)?;
    let Progress { mut from, mut to } = *progress;
    while to < until {
        let token = *packed.get(from)?;
        from += 1;
        let mut literals = usize::from(token >> 4);
        if literals == 15 {
            literals = literals.saturating_add(more(packed, &mut from)?);
        }
        copy_literals(packed.get(from..)?, output.get_mut(to..)?, literals)?;
        from += literals;
        to += literals;
        let Some(offset) = packed.get(from..).and_then(|rest| rest.first_chunk::<2>()) else {
            if from != packed.len() || to > end {
                return None;
            }
            break;
        };
        let offset = usize::from(u16::from_le_bytes(*offset));
        from += 2;
        let mut length = usize::from(token & 15) + 4;
        if length == 19 {
            length = length.saturating_add(more(packed, &mut from)?);
        }
        if offset == 0 || offset > to || length > end.checked_sub(to)? {
            return None;
        }
        copy_match(output, to, offset, length)?;
        to += length;
    }
    *progress = Progress { from, to };
    Some(())
}

/// Where a block ends that other bytes follow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    At(usize),
    /// Behind the bytes that were read, if it is a block.
    Behind,
    /// It is no block.
    Nowhere,
}

/// Where the block that `packed` begins with ends, if it is one of `bytes` bytes: by its lengths
/// alone, nothing is decoded. A block ends with literals, so at most one place comes into question.
/// Goes on from `progress`, which is for this function alone, when there are more bytes than the
/// last time.
pub fn find_end(packed: &[u8], bytes: usize, progress: &mut Progress) -> End {
    loop {
        match pass_sequence(packed, bytes, *progress) {
            Ok(next) => *progress = next,
            Err(end) => return end,
        }
    }
}

/// Where the next sequence ends; the end of the block, if that does not come before.
fn pass_sequence(packed: &[u8], bytes: usize, progress: Progress) -> Result<Progress, End> {
    let Progress { mut from, to } = progress;
    let token = *packed.get(from).ok_or(End::Behind)?;
    from += 1;
    let mut literals = usize::from(token >> 4);
    if literals == 15 {
        literals = literals.saturating_add(more(packed, &mut from).ok_or(End::Behind)?);
    }
    let to = to.checked_add(literals).filter(|&to| to <= bytes).ok_or(End::Nowhere)?;
    from += literals;
    if to == bytes {
        return Err(if from <= packed.len() { End::At(from) } else { End::Behind });
    }
    let offset = packed.get(from..).and_then(|rest| rest.first_chunk::<2>()).ok_or(End::Behind)?;
    let offset = usize::from(u16::from_le_bytes(*offset));
    from += 2;
    let mut length = usize::from(token & 15) + 4;
    if length == 19 {
        length = length.saturating_add(more(packed, &mut from).ok_or(End::Behind)?);
    }
    let end = to.checked_add(length).filter(|&end| end <= bytes && (1..=to).contains(&offset));
    Ok(Progress { from, to: end.ok_or(End::Nowhere)? })
}

/// The sum of the `more` bytes at `at`, which moves behind them.
#[inline]
fn more(packed: &[u8], at: &mut usize) -> Option<usize> {
    let mut sum = 0_usize;
    loop {
        let byte = *packed.get(*at)?;
        *at += 1;
        sum = sum.saturating_add(usize::from(byte));
        if byte != u8::MAX {
            return Some(sum);
        }
    }
}

/// Copies the first `length` bytes; behind them, up to 64 are written over.
#[inline(always)]
fn copy_literals(packed: &[u8], output: &mut [u8], length: usize) -> Option<()> {
    if length <= LITERALS
        && let Some(source) = packed.first_chunk::<LITERALS>()
        && let Some(target) = output.first_chunk_mut::<LITERALS>()
    {
        target[..16].copy_from_slice(&source[..16]);
        if length > 16 {
            target[16..32].copy_from_slice(&source[16..32]);
        }
        if length > 32 {
            target[32..].copy_from_slice(&source[32..]);
        }
    } else {
        output.get_mut(..length)?.copy_from_slice(packed.get(..length)?);
    }
    Some(())
}

/// Copies `length` bytes from `offset` bytes before `to`; behind them, less than [`PIECE`] are
/// written over.
#[inline(always)]
fn copy_match(output: &mut [u8], to: usize, offset: usize, length: usize) -> Option<()> {
    let from = to - offset;
    if offset < PIECE {
        // What was copied is copied again, twice as much each time.
        let mut done = 0;
        while done < length {
            let step = (offset + done).min(length - done);
            output.copy_within(from..from + step, to + done);
            done += step;
        }
        return Some(());
    }
    let mut done = 0;
    while done < length {
        let piece = *output.get(from + done..)?.first_chunk::<PIECE>()?;
        *output.get_mut(to + done..)?.first_chunk_mut::<PIECE>()? = piece;
        done += PIECE;
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::Random;
    use lz4_flex::block::compress;

    fn decoded(packed: &[u8], bytes: usize) -> Option<Vec<u8>> {
        let mut output = vec![0xaa; bytes + SLACK_BYTES];
        let length = decode(packed, &mut output)?;
        output.truncate(length);
        Some(output)
    }

    /// Text with runs, repetitions from near and far, and noise.
    fn text(random: &mut Random, bytes: usize) -> Vec<u8> {
        let mut text: Vec<u8> = Vec::new();
        while text.len() < bytes {
            let most = [8, 60, 400][random.below(3) as usize];
            let length = 1 + random.below(most) as usize;
            match random.below(4) {
                0 => text.extend((0..length).map(|_| random.below(256) as u8)),
                1 => text.extend(std::iter::repeat_n(random.below(256) as u8, length)),
                _ if text.is_empty() => {}
                _ => {
                    let far = [20, 100, 70_000][random.below(3) as usize];
                    let back = 1 + random.below(far.min(text.len() as u64));
                    let start = text.len() - back as usize;
                    (0..length).for_each(|index| text.push(text[start + index]));
                }
            }
        }
        text.truncate(bytes);
        text
    }

    #[test]
    fn what_the_library_packs_is_unpacked() {
        for round in 0..3000 {
            let mut random = Random::new(round);
            let bytes = random.below([20, 300, 5000, 200_000][(round % 40 / 13) as usize]) as usize;
            let raw = text(&mut random, bytes);
            let packed = compress(&raw);
            assert_eq!(decoded(&packed, raw.len()).as_deref(), Some(&*raw), "seed {round}");
            assert_eq!(decoded(&packed, raw.len() + 100).as_deref(), Some(&*raw), "seed {round}");
            if !raw.is_empty() {
                assert_eq!(decoded(&packed, raw.len() - 1), None, "seed {round}: too long for the output");
            }
        }
    }

    #[test]
    fn a_part_is_what_all_begins_with() {
        for round in 0..2000 {
            let mut random = Random::new(round);
            let bytes = 1 + random.below(3000) as usize;
            let raw = text(&mut random, bytes);
            let packed = compress(&raw);
            let mut output = vec![0xaa; bytes + SLACK_BYTES];
            let mut progress = Progress::default();
            let mut until = 0;
            while progress.to < bytes {
                until += 1 + random.below(700) as usize;
                let before = progress.to;
                let done = decode_until(&packed, &mut output, &mut progress, until);
                assert_eq!(done, Some(()), "seed {round}");
                assert!(progress.to >= until.min(bytes), "seed {round}");
                assert!(before < until || progress.to == before, "seed {round}: more than was asked for");
                assert_eq!(output[..progress.to], raw[..progress.to], "seed {round}");
            }
            assert_eq!(decode_until(&packed, &mut output, &mut progress, bytes + 1), None, "seed {round}");
        }
    }

    /// With anything behind it, and when the bytes come little by little.
    #[test]
    fn the_end_of_a_block_is_found_in_what_follows() {
        for round in 0..3000 {
            let mut random = Random::new(round);
            let bytes = random.below([20, 300, 5000, 200_000][(round % 40 / 13) as usize]) as usize;
            let raw = text(&mut random, bytes);
            let mut packed = compress(&raw);
            let end = packed.len();
            packed.extend((0..random.below(100)).map(|_| random.below(256) as u8));
            let mut progress = Progress::default();
            let mut length = 0;
            loop {
                let found = find_end(&packed[..length], raw.len(), &mut progress);
                if length >= end {
                    assert_eq!(found, End::At(end), "seed {round}");
                    break;
                }
                assert_eq!(found, End::Behind, "seed {round}: {length} of {end} bytes");
                length = (length + 1 + random.below(1 + end as u64 / 4) as usize).min(packed.len());
            }
        }
    }

    /// What makes decoding linear, whatever is in the block: each sequence takes bytes of it, and
    /// all but the last make bytes of the output, none of which is written twice but for the slack.
    /// And no output is begun that is longer than 255 times the block (`compression.rs`,
    /// `split_size`).
    #[test]
    fn each_sequence_moves_on() {
        let mut sequences = 0;
        for round in 0..2000 {
            let mut random = Random::new(round);
            // As short as can be, or with a match as long as its bytes make it; now and then a byte
            // too many.
            let mut packed = vec![0x10, 7, 1, 0];
            for _ in 0..random.below(400) {
                let longer = random.below(2) as u8;
                packed.extend([15 * longer, 1, 0]);
                let more = u64::from(longer) * random.below(5);
                packed.extend(std::iter::repeat_n(255, more as usize));
                packed.extend(std::iter::repeat_n(9, usize::from(longer)));
                packed.extend(std::iter::repeat_n(random.below(256) as u8, usize::from(random.below(300) == 0)));
            }
            let most = packed.len() * 255;
            let mut output = vec![0; most + SLACK_BYTES];
            let mut progress = Progress::default();
            loop {
                let before = progress;
                // One sequence at a time.
                let done = decode_until(&packed, &mut output, &mut progress, before.to + 1);
                if done.is_none() || progress.from == packed.len() {
                    break;
                }
                assert!(
                    progress.from > before.from && progress.to > before.to,
                    "seed {round}: {before:?} {progress:?}"
                );
                assert!(progress.to <= most, "seed {round}");
                sequences += 1;
            }
            // The same for a walk over the lengths.
            let mut progress = Progress::default();
            while let Ok(next) = pass_sequence(&packed, most, progress) {
                assert!(next.from > progress.from, "seed {round}: {progress:?} {next:?}");
                progress = next;
            }
        }
        assert!(sequences > 10_000, "{sequences} sequences");
    }

    #[test]
    fn damage_never_panics_and_never_passes_the_end() {
        for round in 0..20_000 {
            let mut random = Random::new(round);
            let raw = text(&mut random, 1 + (round % 700) as usize);
            let mut packed = compress(&raw);
            for _ in 0..=random.below(4) {
                let at = random.below(packed.len() as u64) as usize;
                match random.below(3) {
                    0 => packed[at] = random.below(256) as u8,
                    1 => packed.truncate(at.max(1)),
                    _ => packed.insert(at, 255),
                }
            }
            let mut output = vec![0; raw.len() + SLACK_BYTES];
            // It may still be a block; then it ends where the output does, at the latest.
            let length = decode(&packed, &mut output);
            assert!(length.is_none_or(|length| length <= raw.len()), "seed {round}");
            let mut progress = Progress::default();
            for until in 0..=raw.len() + 1 {
                let done = decode_until(&packed, &mut output, &mut progress, until);
                assert!(progress.to <= raw.len(), "seed {round}");
                if done.is_none() {
                    break;
                }
            }
        }
    }

    #[test]
    fn edges() {
        assert_eq!(decoded(&[], 0), None);
        assert_eq!(decoded(&[0], 0).as_deref(), Some(&[][..]));
        // A match with nothing before it, one from before the start, and one of offset 0.
        assert_eq!(decoded(&[0x00, 1, 0, 0], 100), None);
        assert_eq!(decoded(&[0x10, b'a', 2, 0, 0], 100), None);
        assert_eq!(decoded(&[0x10, b'a', 0, 0, 0], 100), None);
        // A run: one literal, seen again four times, and nothing behind.
        assert_eq!(decoded(&[0x10, b'a', 1, 0, 0], 100).as_deref(), Some(&b"aaaaa"[..]));
        // Lengths that never end, or are greater than anything.
        assert_eq!(decoded(&[0xf0, 255, 255], 100), None);
        assert_eq!(decoded(&[0xff; 5000], 1 << 20), None);
        assert_eq!(decode(&[0], &mut []), None);
    }
}
