//! Records: sealed records are opened by one end, once and in order, and nothing else is.

use pointstamp_testkit::cases;
use proptest::prelude::*;
use snow::Builder;

use super::*;

const KEY: [u8; 32] = [5; 32];

fn sealed(sealer: &mut Sealer, plain: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    sealer
        .seal(&mut out, |out| out.extend_from_slice(plain))
        .unwrap();
    out
}

/// Opens all records of a stream; returns their bytes, and the error that ended it.
fn opened(opener: &mut Opener, mut stream: &[u8]) -> (Vec<u8>, Option<Broken>) {
    let mut plain = Vec::new();
    loop {
        let len = match Opener::length(stream) {
            Ok(Some(len)) if stream.len() >= PREFIX + len => len,
            Ok(_) => return (plain, None),
            Err(broken) => return (plain, Some(broken)),
        };
        let mut record = stream[PREFIX..PREFIX + len].to_vec();
        match opener.open(&mut record) {
            Ok(len) => plain.extend_from_slice(&record[..len]),
            Err(broken) => return (plain, Some(broken)),
        }
        stream = &stream[PREFIX + len..];
    }
}

fn some_records() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let record = prop_oneof![
        prop::collection::vec(any::<u8>(), 1..40),
        (1..=PLAIN, any::<u8>()).prop_map(|(len, byte)| vec![byte; len]),
    ];
    prop::collection::vec(record, 1..6)
}

proptest! {
    #![proptest_config(cases(64))]

    #[test]
    fn what_is_sealed_is_opened(records in some_records()) {
        let (mut sealer, mut opener) = (Sealer::new(&KEY), Opener::new(&KEY));
        let stream: Vec<u8> = records.iter().flat_map(|plain| sealed(&mut sealer, plain)).collect();
        prop_assert_eq!(opened(&mut opener, &stream), (records.concat(), None));
    }

    #[test]
    fn a_bit_that_flips_anywhere_is_noticed(records in some_records(), at in any::<prop::sample::Index>(), bit in 0_u32..8) {
        let mut sealer = Sealer::new(&KEY);
        let stream: Vec<Vec<u8>> = records.iter().map(|plain| sealed(&mut sealer, plain)).collect();
        let mut stream = stream.concat();
        let at = at.index(stream.len());
        stream[at] ^= 1_u8 << bit;
        let (plain, broken) = opened(&mut Opener::new(&KEY), &stream);
        // A prefix of the sent bytes, and then an error; a longer length waits for bytes that do not come, and ends
        // with the connection.
        prop_assert!(records.concat().starts_with(&plain) && plain.len() < records.concat().len());
        prop_assert!(broken.is_some() || stream.len() < at + MOST + PREFIX);
    }

    #[test]
    fn any_bytes_are_refused_and_nothing_panics(bytes in prop::collection::vec(any::<u8>(), 0..3000)) {
        let (plain, _) = opened(&mut Opener::new(&KEY), &bytes);
        prop_assert!(plain.is_empty());
    }
}

#[test]
fn records_repeated_left_out_exchanged_and_reflected_do_not_verify() {
    let mut sealer = Sealer::new(&KEY);
    let [first, second, third] = [b"one", b"two", b"six"].map(|plain| sealed(&mut sealer, plain));
    let opens = |stream: &[&[u8]]| opened(&mut Opener::new(&KEY), &stream.concat());
    let forged = |plain: &[u8]| (plain.to_vec(), Some(Broken::Forged));
    assert_eq!(
        opens(&[&first, &second, &third]),
        (b"onetwosix".to_vec(), None)
    );
    assert_eq!(opens(&[&first, &first]), forged(b"one"), "repeated");
    assert_eq!(opens(&[&first, &third]), forged(b"one"), "left out");
    assert_eq!(opens(&[&second, &first]), forged(b""), "exchanged");
    assert_eq!(
        opens(&[&first, &first[..2], &[0; 19], &second]),
        forged(b"one"),
        "put in"
    );
    let other = opened(&mut Opener::new(&[6; 32]), &first);
    assert_eq!(other, forged(b""), "the key of the other direction");
    assert_eq!(
        opens(&[&first, &[3, 0, 1, 2, 3]]),
        (b"one".to_vec(), Some(Broken::Short(3)))
    );
}

#[test]
fn no_nonce_is_used_twice_and_keys_follow_each_other() {
    let (mut sealer, mut opener) = (Sealer::new(&KEY), Opener::new(&KEY));
    for counter in [REKEY - 1, 2 * REKEY - 1] {
        (sealer.0.counter, opener.0.counter) = (counter, counter);
        for plain in [b"before", b"after ", b"longer"] {
            let record = sealed(&mut sealer, plain);
            assert_eq!(opened(&mut opener, &record), (plain.to_vec(), None));
        }
    }
    let mut late = Opener::new(&KEY);
    late.0.counter = REKEY + 1;
    sealer = Sealer::new(&KEY);
    sealer.0.counter = REKEY;
    sealed(&mut sealer, b"");
    let record = sealed(&mut sealer, b"under the second key");
    assert_eq!(
        opened(&mut late, &record).1,
        Some(Broken::Forged),
        "the first key is gone"
    );
    sealer.0.counter = NEXT_KEY - 1;
    let mut out = Vec::new();
    assert_eq!(sealer.seal(&mut out, |_| ()), Err(Broken::Worn));
    assert_eq!(sealer.seal(&mut out, |_| ()), Err(Broken::Worn));
}

/// Creates two ends of Noise by snow, and the keys that it gives for our records.
fn of_snow() -> (
    snow::StatelessTransportState,
    snow::StatelessTransportState,
    [u8; 32],
) {
    let builder = || {
        let pattern = "Noise_NNpsk0_25519_AESGCM_SHA256".parse().unwrap();
        Builder::new(pattern).psk(0, &[9; 32]).unwrap()
    };
    let (mut here, mut there) = (
        builder().build_initiator().unwrap(),
        builder().build_responder().unwrap(),
    );
    let (mut message, mut payload) = ([0; 200], [0; 200]);
    let len = here.write_message(&[], &mut message).unwrap();
    there.read_message(&message[..len], &mut payload).unwrap();
    let len = there.write_message(&[], &mut message).unwrap();
    here.read_message(&message[..len], &mut payload).unwrap();
    let (forth, _) = here.dangerously_get_raw_split();
    (
        here.into_stateless_transport_mode().unwrap(),
        there.into_stateless_transport_mode().unwrap(),
        forth,
    )
}

#[test]
fn records_are_the_messages_of_noise_also_after_its_rekey() {
    let (mut here, mut there, key) = of_snow();
    let (mut sealer, mut opener) = (Sealer::new(&key), Opener::new(&key));
    for counter in [0, 1, REKEY, REKEY + 1] {
        if counter == REKEY {
            here.rekey_outgoing();
            there.rekey_incoming();
            (sealer.0.counter, opener.0.counter) = (REKEY, REKEY);
        }
        let mut message = [0; 100];
        let len = here
            .write_message(counter, b"the same", &mut message)
            .unwrap();
        let record = sealed(&mut sealer, b"the same");
        assert_eq!(record[PREFIX..], message[..len]);
        let mut plain = [0; 100];
        let len = there
            .read_message(counter, &record[PREFIX..], &mut plain)
            .unwrap();
        assert_eq!(&plain[..len], b"the same");
        assert_eq!(opened(&mut opener, &record).0, b"the same");
    }
}
