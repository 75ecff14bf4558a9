//! Tuples as keys: one element after the other, ordered by the first in which they differ. All but
//! the last are self-delimiting.

use super::decode_error::DecodeError;
use super::key::{EncodeKey, KeyCodec, KeyPrefix};

macro_rules! tuple_keys {
    ($(($($key:ident $form:ident $field:tt),+; $last_key:ident $last_form:ident $last:tt);)*) => {$(
        impl<$($key, $form: EncodeKey<$key>,)+ $last_key, $last_form: EncodeKey<$last_key>>
            EncodeKey<($($key,)+ $last_key,)> for ($($form,)+ $last_form,)
        {
            fn encode_element(&self, out: &mut Vec<u8>) {
                $(self.$field.encode_element(out);)+
                self.$last.encode_element(out);
            }

            fn encode_key(&self, out: &mut Vec<u8>) {
                $(self.$field.encode_element(out);)+
                self.$last.encode_key(out);
            }
        }

        impl<$($key: KeyCodec,)+ $last_key: KeyCodec> KeyCodec for ($($key,)+ $last_key,) {
            fn decode_element(input: &mut &[u8]) -> Result<Self, DecodeError> {
                Ok(($($key::decode_element(input)?,)+ $last_key::decode_element(input)?,))
            }

            fn decode_key(mut input: &[u8]) -> Result<Self, DecodeError> {
                Ok(($($key::decode_element(&mut input)?,)+ $last_key::decode_key(input)?,))
            }
        }
    )*};
}

tuple_keys! {
    (A X 0; B Y 1);
    (A W 0, B X 1; C Y 2);
    (A V 0, B W 1, C X 2; D Y 3);
    (A U 0, B V 1, C W 2, D X 3; E Y 4);
    (A T 0, B U 1, C V 2, D W 3, E X 4; F Y 5);
}

macro_rules! tuple_prefixes {
    ($(($($key:ident $form:ident $field:tt),+; $($rest:ident),+);)*) => {$(
        impl<$($key, $form: EncodeKey<$key>,)+ $($rest),+> KeyPrefix<($($key,)+ $($rest,)+)> for ($($form,)+) {
            fn encode_prefix(&self, out: &mut Vec<u8>) {
                $(self.$field.encode_element(out);)+
            }
        }
    )*};
}

tuple_prefixes! {
    (A V 0; B);
    (A V 0; B, C);
    (A V 0; B, C, D);
    (A V 0; B, C, D, E);
    (A V 0; B, C, D, E, F);
    (A V 0, B W 1; C);
    (A V 0, B W 1; C, D);
    (A V 0, B W 1; C, D, E);
    (A V 0, B W 1; C, D, E, F);
    (A V 0, B W 1, C X 2; D);
    (A V 0, B W 1, C X 2; D, E);
    (A V 0, B W 1, C X 2; D, E, F);
    (A V 0, B W 1, C X 2, D Y 3; E);
    (A V 0, B W 1, C X 2, D Y 3; E, F);
    (A V 0, B W 1, C X 2, D Y 3, E Z 4; F);
}
