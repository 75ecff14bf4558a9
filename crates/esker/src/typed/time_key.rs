//! Times as keys: whole seconds, then nanoseconds below a second. A time before 1970 has negative
//! seconds, and still counts its nanoseconds forward.

use super::decode_error::DecodeError;
use super::key::{EncodeKey, KeyCodec};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

const NANOS: u32 = 1_000_000_000;

fn decode_nanos(input: &mut &[u8]) -> Result<u32, DecodeError> {
    match u32::decode_element(input)? {
        nanos @ ..NANOS => Ok(nanos),
        other => Err(DecodeError(format!("expected less than {NANOS} nanoseconds of a time, found {other}"))),
    }
}

impl EncodeKey<Duration> for Duration {
    fn encode_element(&self, out: &mut Vec<u8>) {
        self.as_secs().encode_element(out);
        self.subsec_nanos().encode_element(out);
    }
}

impl KeyCodec for Duration {
    fn decode_element(input: &mut &[u8]) -> Result<Duration, DecodeError> {
        let seconds = u64::decode_element(input)?;
        Ok(Duration::new(seconds, decode_nanos(input)?))
    }
}

/// Seconds and nanoseconds since 1970. No system has times whose seconds do not fit.
fn since_1970(time: SystemTime) -> (i64, u32) {
    let clamp = |seconds: i128| seconds.clamp(i64::MIN.into(), i64::MAX.into()) as i64;
    match time.duration_since(UNIX_EPOCH) {
        Ok(after) => (clamp(after.as_secs().into()), after.subsec_nanos()),
        Err(error) => {
            let before = error.duration();
            let seconds = -i128::from(before.as_secs());
            match before.subsec_nanos() {
                0 => (clamp(seconds), 0),
                nanos => (clamp(seconds - 1), NANOS - nanos),
            }
        }
    }
}

impl EncodeKey<SystemTime> for SystemTime {
    fn encode_element(&self, out: &mut Vec<u8>) {
        let (seconds, nanos) = since_1970(*self);
        seconds.encode_element(out);
        nanos.encode_element(out);
    }
}

impl KeyCodec for SystemTime {
    fn decode_element(input: &mut &[u8]) -> Result<SystemTime, DecodeError> {
        let seconds = i64::decode_element(input)?;
        let nanos = decode_nanos(input)?;
        let whole = Duration::from_secs(seconds.unsigned_abs());
        let time = if seconds < 0 { UNIX_EPOCH.checked_sub(whole) } else { UNIX_EPOCH.checked_add(whole) };
        let time = time.and_then(|time| time.checked_add(Duration::from_nanos(nanos.into())));
        let beyond = || DecodeError(format!("expected a time of this system, found {seconds} seconds since 1970"));
        time.ok_or_else(beyond)
    }
}
