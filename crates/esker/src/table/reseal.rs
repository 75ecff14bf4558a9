//! Tables that are wrong although every checksum is right, for the tests of what reads them.

use super::format::{FOOTER_BYTES, FOOTER_SUMMED_BYTES, Footer, read_plain};
use super::index::Index;
use crate::base::checksum::checksum;
use crate::base::key_order::KeyOrder;
use crate::env::Env;
use crate::env::mem::MemEnv;
use crate::error::Result;
use std::path::Path;

/// Changes bytes of the intact table `content`, each at a place by exclusive or, and makes the
/// checksums of all its blocks and of its footer right again.
pub fn reseal(content: &mut [u8], file_number: u64, changes: &[(usize, u8)]) -> Result<()> {
    let (env, path) = (MemEnv::new(), Path::new("table"));
    env.set_file_bytes(path, content.to_vec());
    let file = env.open(path)?;
    let footer = Footer::read(&*file, path, file_number)?;
    let index = read_plain(&*file, path, file_number, footer.index)?;
    let index = Index::decode(&index, footer.index.offset, &KeyOrder::Bytewise)
        .map_err(|error| error.at(path, footer.index.offset))?;
    for &(place, bits) in changes {
        if let Some(byte) = content.get_mut(place) {
            *byte ^= bits;
        }
    }
    let blocks = (0..index.len()).filter_map(|number| index.handle(number));
    for handle in blocks.chain([footer.index, footer.filter, footer.properties]) {
        sum_again(content, file_number, handle.offset as usize, handle.bytes as usize);
    }
    let footer_at = content.len() - FOOTER_BYTES;
    sum_again(content, file_number, footer_at, FOOTER_SUMMED_BYTES + 4);
    Ok(())
}

/// Writes the checksum of the bytes at `offset` into their last four. There are that many, or none.
fn sum_again(content: &mut [u8], file_number: u64, offset: usize, bytes: usize) {
    if let Some((covered, sum)) =
        content.get_mut(offset..offset + bytes).and_then(|block| block.split_last_chunk_mut::<4>())
    {
        *sum = checksum(file_number, offset as u64, covered).to_le_bytes();
    }
}
