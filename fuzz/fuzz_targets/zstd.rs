#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| esker::internals::decoders::zstd(bytes));
