//! The slots of keys, as clients of Redis Cluster compute them.

use crc::{CRC_16_XMODEM, Crc};

/// How many slots there are. All are served by the one group of replicas.
pub const SLOTS: u16 = 16_384;

static CRC: Crc<u16> = Crc::<u16>::new(&CRC_16_XMODEM);

/// The slot of a key: that of what is between its first braces, if there is something.
pub fn slot_of(key: &[u8]) -> u16 {
    let tag = key.iter().position(|&byte| byte == b'{').and_then(|open| {
        let behind = &key[open + 1..];
        let length = behind.iter().position(|&byte| byte == b'}').filter(|&length| length > 0)?;
        Some(&behind[..length])
    });
    CRC.checksum(tag.unwrap_or(key)) % SLOTS
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of the specification of Redis Cluster: the check value of its CRC, and keys with tags.
    #[test]
    fn slots() {
        assert_eq!(slot_of(b"123456789"), 0x31c3 % SLOTS);
        assert_eq!(slot_of(b"{user1000}.following"), slot_of(b"{user1000}.followers"));
        assert_eq!(slot_of(b"foo{{bar}}zap"), slot_of(b"{bar"));
        assert_eq!(slot_of(b"foo{bar}{zap}"), slot_of(b"bar"));
        assert_ne!(slot_of(b"foo{}{bar}"), slot_of(b"bar"));
    }
}
